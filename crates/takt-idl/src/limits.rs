//! Limits of what is read. Beyond each there is an error that names it.

/// Octets of a file and of all that it includes.
pub const MAX_TEXT_LEN: usize = 8 * 1024 * 1024;
/// Tokens of a file and of all that it includes, after macros are replaced. As many are those of macros, and uses of macros.
pub const MAX_TOKENS: usize = 1 << 20;
/// Levels of files that include each other.
pub const MAX_INCLUDE_DEPTH: usize = 32;
/// Levels of modules, of types within collections and of brackets of an expression, together: brackets behind an operator are two.
/// Also levels of macros, of `#if`, of messages of ROS 2, and the parts of a scoped name.
pub const MAX_DEPTH: usize = 64;
/// Dimensions of an array.
pub const MAX_DIMENSIONS: usize = 64;
/// Types of members and typedefs, with those within them: each declarator has its own.
pub const MAX_TYPE_SPECS: usize = 1 << 20;
/// Warnings that are kept. The others are counted.
pub const MAX_WARNINGS: usize = 1000;
/// Octets of an identifier, of a qualified name, and of a string literal.
pub const MAX_NAME_LEN: usize = 256;
