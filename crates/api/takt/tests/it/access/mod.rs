//! Access to received samples: reading, waiting, listeners, filters and coherent sets.

mod async_receive;
mod blocking_receive;
mod coherent_access;
mod content_filter;
mod listener;
mod multitopic;
mod query_condition;
mod reading;
mod reading_instances;
mod waitset;
