//! Types and payloads that a peer made up to do harm.
