//! `takt sdn`: the OpenFlow controller of a network, and queries to it (docs/guide/sdn.md).

mod event_fields;
mod measure;
mod queues;
mod register;
mod run;
mod show;
mod text;

use clap::{Args, Subcommand};
use takt_bench::Result;

/// `takt sdn`
#[derive(Args)]
pub struct Sdn {
    #[command(subcommand)]
    command: SdnCommand,
}

#[derive(Subcommand)]
enum SdnCommand {
    /// Run the controller: topology, forwarding, and admission of pairs with contracts
    Run(Box<run::Run>),
    /// Print the counters of the controller
    Status(show::QueryOptions),
    /// List switches with their ports and queues, links, and hosts
    Topology(show::QueryOptions),
    /// List pairs with contracts: decision, bound and limit
    Flows(show::QueryOptions),
    /// Explain a flow: contract, path and bound, or refusal and remedy
    Explain(show::Explain),
    /// Print the decision about a pair without admitting it
    Admit(show::Admit),
    /// Print the whole state as JSON
    Export(show::Export),
    /// Admit a pair that discovery does not show, for example with DDS Security
    Register(Box<register::Register>),
    /// Remove a registered pair
    Unregister(register::Unregister),
    /// Measure a real switch, and write its switch model
    Measure(Box<measure::Measure>),
    /// Create, show and remove the queues of switch models on the ports of this host
    Queues(Box<queues::Queues>),
}

impl Sdn {
    /// Reports whether the command only queries a running controller and holds no state.
    pub fn is_query(&self) -> bool {
        match &self.command {
            SdnCommand::Run(_) | SdnCommand::Queues(_) | SdnCommand::Measure(_) => false,
            SdnCommand::Register(register) => !register.is_held(),
            _ => true,
        }
    }

    /// Runs the command.
    pub fn run(self) -> Result<()> {
        match self.command {
            SdnCommand::Run(run) => run.run(),
            SdnCommand::Status(ask) => show::status(&ask),
            SdnCommand::Topology(ask) => show::topology(&ask),
            SdnCommand::Flows(ask) => show::flows(&ask),
            SdnCommand::Explain(explain) => explain.run(),
            SdnCommand::Admit(admit) => admit.run(),
            SdnCommand::Export(export) => export.run(),
            SdnCommand::Register(register) => register.run(),
            SdnCommand::Unregister(unregister) => unregister.run(),
            SdnCommand::Measure(measure) => measure.run(),
            SdnCommand::Queues(queues) => queues.run(),
        }
    }
}
