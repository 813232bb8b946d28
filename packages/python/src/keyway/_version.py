"""The version of this package; the builder of the wheel completes it with the identity of the build."""

VERSION = "0.1.0"
