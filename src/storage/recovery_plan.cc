#include "storage/recovery_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "storage/data_set.h"

namespace sava::storage {

namespace {

using Part = RecoveryPlan::Part;
using Cure = RecoveryPlan::Cure;
using Finding = RecoveryPlan::Finding;

base::Result<base::MappedFile> OpenPart(FileSystem& files, const RecoveryPlan& plan,
                                        const Part& part) {
  if (plan.ring.lacking > 0 && part.path == plan.restored) {
    return files.MapWithEnd(part.path, plan.ring.offset, plan.ring.end);
  }
  return files.Map(part.path);
}

// What an increment tells of the ones before it.
void HearOf(std::span<Part> earlier, std::string_view increment) {
  const AofAfter after = AofAfter::Of(increment);
  const bool synced = AofProvesSync(increment);
  for (Part& part : earlier) {
    if (synced) part.may_end = false;
    if (part.file.sequence == after.sequence) part.had = after.size;
  }
}

// Opens every part, and has each tell what it knows of the ones before it. The last one first: a
// server may be writing, and an earlier one must not seem shorter than a later one says.
void LookAtParts(FileSystem& files, RecoveryPlan* plan) {
  const std::span<Part> parts(plan->parts);
  const size_t bases = !parts.empty() && parts[0].file.kind == AofFile::Kind::kBase ? 1 : 0;
  for (Part& part : parts) part.may_end = true;
  for (size_t i = parts.size(); i-- > 0;) {
    const auto file = OpenPart(files, *plan, parts[i]);
    // A base was synced before anything followed it.
    if (bases == 1 && i > 0) parts[0].may_end = false;
    const auto earlier = i > bases ? parts.subspan(bases, i - bases) : std::span<Part>();
    if (file) {
      parts[i].size = file.value().bytes().size();
      if (!earlier.empty()) HearOf(earlier, file.value().bytes());
    } else {
      parts[i].trouble = file.error();
      for (Part& part : earlier) part.may_end = false;  // for all that is known
    }
  }
}

// The log wins, as in Redis, but the dump may be the only copy of another data set.
void LookAtDump(FileSystem& files, const DataPlaces& places, RecoveryPlan* plan) {
  if (!files.Exists(places.dump)) return;
  const auto id = DataSetOfRdb(files, places.dump);
  if (!id || (!id.value().empty() && id.value() == plan->manifest.data_set)) return;
  plan->foreign_dump = true;
  plan->dump_data_set = id.value();
}

RecoveryPlan Refused(std::string why) {
  RecoveryPlan plan;
  plan.refused = std::move(why);
  return plan;
}

RecoveryPlan PlanDump(FileSystem& files, const DataPlaces& places) {
  RecoveryPlan plan;
  if (!files.Exists(places.dump)) return plan;
  plan.source = RecoveryPlan::Source::kDump;
  if (const auto id = DataSetOfRdb(files, places.dump)) plan.data_set = id.value();
  return plan;
}

// Whether the log of one file is the one to load: there is no other, or it was about to become the
// base of one, and a crash came between the manifest and the move.
bool OldLogCounts(FileSystem& files, const DataPlaces& places, bool has_manifest,
                  const AofManifest& manifest) {
  if (!files.Exists(places.old_log)) return false;
  if (!has_manifest) return true;
  const AofFile* const base = manifest.base();
  return base != nullptr && manifest.increments().empty() && base->name == places.log &&
         !files.Exists(PathIn(places.directory, base->name));
}

bool LostItsEnd(const Part& part) { return part.size < part.had; }

std::string LostText(const Part& part) {
  return fmt::format(
      "Unexpected end of file reading the append only file {}: it has {} bytes, and had {}",
      part.path, part.size, part.had);
}

std::string Advice(const Part& part, Cure cure) {
  switch (cure) {
    case Cure::kCut:
      return "Either run 'sava check --repair' on it, which keeps a copy, or set "
             "aof-load-truncated to yes and start again.";
    case Cure::kRepair:
      return "'sava check --repair' cuts it off there, after a copy.";
    case Cure::kAlone:
      return fmt::format(
          "Later files of the log build on it. 'sava check --repair {}' cuts off this file alone, "
          "after a copy.",
          part.path);
    case Cure::kNone:
      break;
  }
  return "Nothing in it is whole.";
}

std::string RefusalOf(const Part& part, const Finding& finding) {
  const AofEnd& end = finding.end;
  switch (end.kind) {
    case AofEnd::Kind::kRefused:
      return end.text;
    case AofEnd::Kind::kWhole:
      return LostText(part);
    case AofEnd::Kind::kTruncated:
    case AofEnd::Kind::kCorrupt:
      break;
  }
  return fmt::format(
      "{} reading the append only file {}: at offset {}: {}. {}",
      end.kind == AofEnd::Kind::kTruncated ? "Unexpected end of file" : "Bad file format",
      part.path, end.offset, end.text, Advice(part, finding.cure));
}

// What can be done about a part that ends so.
Cure CureFor(std::span<const Part> parts, size_t at, const AofEnd& end) {
  const Part& part = parts[at];
  switch (end.kind) {
    case AofEnd::Kind::kRefused:
      return Cure::kNone;
    case AofEnd::Kind::kWhole:  // it has lost its end
      return part.may_end ? Cure::kCut : Cure::kNone;
    case AofEnd::Kind::kTruncated:
      if (part.may_end) return Cure::kCut;
      break;
    case AofEnd::Kind::kCorrupt:
      break;
  }
  // Empty files add nothing, so what comes before them is still the end.
  const auto later = parts.subspan(at + 1);
  const auto adds_nothing = [](const Part& one) { return one.size == 0 && one.trouble.empty(); };
  if (!std::ranges::all_of(later, adds_nothing)) {
    return Cure::kAlone;
  }
  return end.kind == AofEnd::Kind::kCorrupt && end.good == 0 ? Cure::kNone : Cure::kRepair;
}

std::vector<RecoveryPlan::Cut> CutsFor(std::span<const Part> parts, const Finding& finding) {
  std::vector<RecoveryPlan::Cut> cuts;
  if (finding.cure == Cure::kNone || finding.cure == Cure::kAlone) return cuts;
  const Part& part = parts[finding.part];
  if (finding.end.good < part.size) {
    cuts.push_back({part.path, finding.end.good, part.size, "it ends there"});
  }
  if (finding.cure != Cure::kCut) return cuts;
  // The later ones keep nothing but their first line, as increments without records.
  for (const Part& later : parts.subspan(finding.part + 1)) {
    const uint64_t kept = std::min<uint64_t>(later.size, AofSyncedLine(0).size());
    if (later.size == kept) continue;
    cuts.push_back({later.path, kept, later.size, "what comes before it is cut off"});
  }
  return cuts;
}

// What is known to be damage before anything is read.
base::Status KnownDamage(const RecoveryPlan& plan) {
  if (!plan.refused.empty()) return base::Error{plan.refused};
  for (const Part& part : plan.parts) {
    if (!part.trouble.empty()) return base::Error{part.trouble};
    if (LostItsEnd(part) && !part.may_end) return base::Error{LostText(part)};
  }
  return {};
}

AofEnd ReadPart(FileSystem& files, const RecoveryPlan& plan, PartReader& reader, Part* part) {
  AofEnd end;
  end.kind = AofEnd::Kind::kRefused;
  end.text = part->trouble;
  if (!end.text.empty()) return end;
  const auto file = OpenPart(files, plan, *part);
  if (!file) {
    end.text = file.error();
    return end;
  }
  part->size = file.value().bytes().size();  // it may have grown
  return reader.Read(*part, file.value());
}

}  // namespace

RecoveryPlan PlanFile(FileSystem& files, const std::string& path) {
  RecoveryPlan plan;
  plan.source = RecoveryPlan::Source::kOldLog;
  Part part;
  part.path = path;
  part.file = {path.substr(path.rfind('/') + 1), 1, AofFile::Kind::kBase};
  plan.parts.push_back(std::move(part));
  LookAtParts(files, &plan);
  return plan;
}

RecoveryPlan PlanLog(FileSystem& files, const std::string& directory, const std::string& name,
                     AofManifest manifest) {
  RecoveryPlan plan;
  plan.source = RecoveryPlan::Source::kLog;
  plan.directory = directory;
  plan.log = name;
  plan.manifest = std::move(manifest);
  plan.data_set = plan.manifest.data_set;
  std::vector<AofFile> kept = plan.manifest.increments();
  if (plan.manifest.base() != nullptr) kept.insert(kept.begin(), *plan.manifest.base());
  for (AofFile& file : kept) {
    Part part;
    part.path = PathIn(directory, file.name);
    part.file = std::move(file);
    plan.parts.push_back(std::move(part));
  }
  if (!name.empty()) {
    auto ring = RestoreFromRing(files, directory, name, plan.manifest, false);
    if (ring) {
      plan.restored = PathIn(directory, ring->file);
      plan.ring = std::move(*ring);
    } else {
      plan.refused = ring.error();
    }
  }
  LookAtParts(files, &plan);
  return plan;
}

RecoveryPlan PlanStart(FileSystem& files, const DataPlaces& places, bool use_log) {
  if (!use_log) return PlanDump(files, places);
  const std::string manifest_path = PathIn(places.directory, AofManifestName(places.log));
  AofManifest manifest;
  const bool has_manifest = files.Exists(manifest_path);
  if (has_manifest) {
    auto read = AofManifest::Read(files, manifest_path);
    if (!read) return Refused(read.error());
    manifest = std::move(*read);
  }
  if (OldLogCounts(files, places, has_manifest, manifest)) {
    RecoveryPlan plan = PlanFile(files, places.old_log);
    plan.manifest = std::move(manifest);
    LookAtDump(files, places, &plan);
    return plan;
  }
  if (manifest.base() == nullptr && manifest.increments().empty()) {
    RecoveryPlan plan = PlanDump(files, places);
    plan.manifest = std::move(manifest);  // history, which is removed
    return plan;
  }
  RecoveryPlan plan = PlanLog(files, places.directory, places.log, std::move(manifest));
  LookAtDump(files, places, &plan);
  if (plan.manifest.highest(AofFile::Kind::kIncrement) >= AofManifest::kLastSequence) {
    plan.refused = "no sequence number is left for another increment of the log";
  }
  return plan;
}

base::Status ReadParts(FileSystem& files, RecoveryPlan* plan, PartReader& reader,
                       const ReadRules& rules) {
  base::Status refused = KnownDamage(*plan);
  if (!refused && !rules.read_on) return refused;
  for (size_t i = 0; i < plan->parts.size(); ++i) {
    Part& part = plan->parts[i];
    Finding finding;
    finding.part = i;
    finding.end = ReadPart(files, *plan, reader, &part);
    finding.lost = LostItsEnd(part);
    if (finding.end.kind == AofEnd::Kind::kWhole && !finding.lost) continue;
    finding.cure = CureFor(plan->parts, i, finding.end);
    finding.cuts = CutsFor(plan->parts, finding);
    const bool ends = finding.cure == Cure::kCut;
    if (refused && !(ends && rules.cut_tails)) refused = base::Error{RefusalOf(part, finding)};
    plan->findings.push_back(std::move(finding));
    if (ends || !rules.read_on) break;
  }
  return refused;
}

base::Status RestoreLog(FileSystem& files, const RecoveryPlan& plan) {
  if (plan.log.empty()) return {};
  const auto restored = RestoreFromRing(files, plan.directory, plan.log, plan.manifest, true);
  if (!restored) return base::Error{restored.error()};
  return {};
}

base::Status RepairLog(FileSystem& files, const RecoveryPlan& plan) {
  if (base::Status status = RestoreLog(files, plan); !status) return status;
  for (const Finding& finding : plan.findings) {
    for (const RecoveryPlan::Cut& cut : finding.cuts) {
      auto file = files.Open(cut.path, FileSystem::Mode::kAppend);
      if (!file) return base::Error{file.error()};
      base::Status status = (*file)->Truncate(cut.kept);
      if (status) status = (*file)->Sync();
      if (!status) return status;
    }
  }
  return {};
}

}  // namespace sava::storage
