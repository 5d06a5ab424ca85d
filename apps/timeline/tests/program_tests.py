"""The commands: generating, sessions, both load tests."""

from harness import World, check, equal
