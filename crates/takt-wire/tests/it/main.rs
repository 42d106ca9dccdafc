//! takt-wire from outside: the rules its parsers follow, real peers' datagrams, and hostile input.

mod captures;
mod corpus;
mod fuzz_dictionary;
mod hostile_input;
mod parser_rules;
mod prefixes;
