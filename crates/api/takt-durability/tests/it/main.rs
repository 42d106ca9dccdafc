//! Tests of the durability service on loopback: samples outlive their writers and services.

mod full_disk;
mod limits;
mod one_topic;
mod outliving;
mod support;
mod two_services;
