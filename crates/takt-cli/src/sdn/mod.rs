//! `takt sdn`: the OpenFlow controller of a network, and queries to it (docs/sdn.md).

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
    /// Find switches, links and hosts, make the switches forward, and admit pairs with contracts
    Run(Box<run::Run>),
    /// The state of the controller in numbers
    Status(show::Ask),
    /// Switches with their ports and queues, links, and hosts
    Topology(show::Ask),
    /// Pairs with contracts: decision, bound and limit
    Flows(show::Ask),
    /// All that is known of a flow: contract, way, bound, or why it is refused and what would make it fit
    Explain(show::Explain),
    /// What would be decided of a pair; nothing changes
    Admit(show::Admit),
    /// The whole state as JSON
    Export(show::Export),
    /// Admit a pair that discovery does not show, as with DDS Security
    Register(Box<register::Register>),
    /// Remove a registered pair
    Unregister(register::Unregister),
    /// Measure a switch model from a real switch, and write its file
    Measure(Box<measure::Measure>),
    /// Make the queues of switch models on the ports of this host, show them, and remove them
    Queues(Box<queues::Queues>),
}

impl Sdn {
    /// Reports whether the command only queries a running controller and holds no state.
    pub fn is_question(&self) -> bool {
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
