//! Delivery of samples: repairs, fragments, histories, slow readers and full memory.

mod batching;
mod blocked_flows;
mod directed;
mod durability;
mod early_data;
mod fragments;
mod full_readers;
mod leaps;
mod reader_memory;
mod relay;
mod reliability;
mod slow_link;
mod slow_readers;
mod writer_memory;
