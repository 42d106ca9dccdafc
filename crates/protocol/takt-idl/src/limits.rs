//! Limits of parsing. Exceeding one results in an error that names it.

/// Maximum octets of a file and all its includes.
pub const MAX_TEXT_LEN: usize = 8 * 1024 * 1024;
/// Maximum number of tokens of a file and its includes, after macro replacement. The same limit
/// applies to tokens of macro definitions, and to macro uses.
pub const MAX_TOKENS: usize = 1 << 20;
/// Maximum nesting depth of includes.
pub const MAX_INCLUDE_DEPTH: usize = 32;
/// Maximum combined nesting depth of modules, collection types and parentheses of an expression;
/// parentheses after an operator count as two. It also limits nested macros, nested `#if`, nested
/// ROS 2 messages, and the parts of a scoped name.
pub const MAX_DEPTH: usize = 64;
/// Maximum number of dimensions of an array.
pub const MAX_DIMENSIONS: usize = 64;
/// Maximum number of member and typedef types, nested types included. Each declarator counts its
/// own.
pub const MAX_TYPE_SPECS: usize = 1 << 20;
/// Maximum number of kept warnings. The others are counted.
pub const MAX_WARNINGS: usize = 1000;
/// Maximum octets of an identifier, of a qualified name, and of a string literal.
pub const MAX_NAME_LEN: usize = 256;
