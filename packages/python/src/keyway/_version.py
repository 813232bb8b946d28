"""The version of this package; `pack.ts`, which builds the wheel, appends a hash of the build."""

VERSION = "0.1.0"
