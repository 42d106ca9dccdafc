//! Integration tests of takt-wire: parser rules, captured datagrams of real peers, and hostile
//! input.

mod captures;
mod corpus;
mod fuzz_dictionary;
mod hostile_input;
mod parser_rules;
mod prefixes;
