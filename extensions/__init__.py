"""Sample extensions: each folder is one that an author could copy out; none imports another."""
