//! QoS policies and statuses.

mod coherent;
pub mod content_filter;
mod contract;
mod deadline;
pub mod groups;
mod groups_history;
mod groups_vendors;
mod instances;
mod latency;
mod lifespan;
mod liveliness;
mod ownership;
mod policies;
mod priority;
mod promptness;
mod purging;
mod source_order;
mod statuses;
mod time_filter;
