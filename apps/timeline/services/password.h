// Passwords as Argon2id texts, and the random and hashed texts of sessions and forms.
#pragma once

#include <string>

namespace timeline {

bool PrepareCrypto();
// Empty when there is not enough memory. Only a few run at once: each takes 64 MB and a core.
std::string HashPassword(const std::string& password);
bool CheckPassword(const std::string& stored, const std::string& password);

std::string RandomToken();                        // 32 bytes in hexadecimal
std::string HashToken(const std::string& token);  // what the database knows of it
std::string KeyedHash(const std::string& secret, const std::string& text);
bool SameText(const std::string& a, const std::string& b);  // in constant time

}  // namespace timeline
