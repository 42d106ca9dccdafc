//! Inventory of a machine: kernel, processors and network interfaces.

use serde::Serialize;

use crate::ethtool::{self, rules};
use crate::machine::Machine;
use crate::setting::Setting;

/// Network interface with its properties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InterfaceFacts {
    /// Name of the interface.
    pub name: String,
    /// Name of the driver, if the interface has a device.
    pub driver: Option<String>,
    /// Number of receive queues.
    pub rx_queues: usize,
    /// Number of transmit queues.
    pub tx_queues: usize,
    /// Interrupts of the device, sorted by number.
    pub interrupts: Vec<u32>,
    /// Tree of queueing disciplines, if it could be restored.
    pub disciplines: Option<String>,
    /// Whether the driver supports rules that assign flows to queues.
    pub has_rules: bool,
    /// Hardware clock `ptpN`, if the interface has one.
    pub clock: Option<String>,
}

/// Facts from which a plan is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Release of the kernel.
    pub kernel: String,
    /// Whether the kernel is almost fully preemptible (PREEMPT_RT).
    pub is_preempt_rt: bool,
    /// Online processors.
    pub cpus: Vec<usize>,
    /// Those of `cpus` that the scheduler does not use (`isolcpus`).
    pub isolated: Vec<usize>,
    /// Those of `cpus` without timer ticks while one thread runs (`nohz_full`).
    pub without_tick: Vec<usize>,
    /// Interrupts of the machine.
    pub interrupts: Vec<u32>,
    /// Network interfaces.
    pub interfaces: Vec<InterfaceFacts>,
}

impl Facts {
    /// Reads the facts of a machine. Unreadable properties count as missing.
    pub fn of(machine: &Machine) -> Self {
        let text = |path: &str| std::fs::read_to_string(machine.path(path)).unwrap_or_default().trim().to_owned();
        Self {
            kernel: text("/proc/sys/kernel/osrelease"),
            is_preempt_rt: text("/sys/kernel/realtime") == "1",
            cpus: numbers(&text("/sys/devices/system/cpu/online")),
            isolated: numbers(&text("/sys/devices/system/cpu/isolated")),
            without_tick: numbers(&text("/sys/devices/system/cpu/nohz_full")),
            interrupts: parsed(machine.names("/proc/irq")),
            interfaces: machine.names("/sys/class/net").iter().map(|name| interface(machine, name)).collect(),
        }
    }

    /// Returns the interface of this name.
    pub fn interface(&self, name: &str) -> Option<&InterfaceFacts> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }
}

fn parsed(names: Vec<String>) -> Vec<u32> {
    names.iter().filter_map(|name| name.parse().ok()).collect() // tidy-allow(dropped-cause): other files stand there too.
}

fn interface(machine: &Machine, name: &str) -> InterfaceFacts {
    let base = format!("/sys/class/net/{name}");
    let queues = machine.names(format!("{base}/queues"));
    let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
    let driver = std::fs::read_link(machine.path(format!("{base}/device/driver"))).ok(); // tidy-allow(dropped-cause): none.
    // The interrupts of a virtio device are those of its PCI parent.
    let interrupts = ["device/msi_irqs", "device/../msi_irqs"].map(|at| parsed(machine.names(format!("{base}/{at}"))));
    InterfaceFacts {
        name: name.to_owned(),
        driver: driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())),
        rx_queues: count("rx-"),
        tx_queues: count("tx-"),
        disciplines: machine.read(&Setting::Qdisc(name.to_owned())).ok(), // tidy-allow(dropped-cause): a plan says why not.
        has_rules: rules::table(&ethtool::driver, name).is_ok(),
        clock: machine.names(format!("{base}/device/ptp")).into_iter().next(),
        interrupts: interrupts.into_iter().find(|found| !found.is_empty()).unwrap_or_default(),
    }
}

/// Parses a list of numbers in the form of the kernel: `0,2-4`. Invalid parts are ignored.
pub(crate) fn numbers(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let [first, last] = [first, last].map(|number| number.trim().parse::<usize>().unwrap_or(usize::MAX));
        first..=if last < usize::from(u16::MAX) { last } else { 0 }
    };
    list.split(',').filter(|part| !part.trim().is_empty()).flat_map(range).collect()
}

/// Formats a list of numbers in the form of the kernel.
pub(crate) fn list(numbers: &[usize]) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *number => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    let range =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Formats a processor mask in the form of the kernel: hexadecimal digits with a comma before every
/// eight.
pub(crate) fn mask(numbers: &[usize]) -> String {
    let mut digits = vec![0_u32; numbers.iter().max().map_or(1, |most| most / 4 + 1)];
    numbers.iter().for_each(|number| digits[number / 4] |= 1 << (number % 4));
    let digits: Vec<_> = digits.iter().rev().filter_map(|digit| char::from_digit(*digit, 16)).collect();
    grouped(&digits)
}

/// Groups digits by eight from the end, separated by commas. The kernel accepts no longer groups.
pub(crate) fn grouped(digits: &[char]) -> String {
    digits.rchunks(8).rev().map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_parsed_and_formatted() {
        assert_eq!(numbers("0,2-4,7"), [0, 2, 3, 4, 7]);
        assert_eq!(list(&[0, 2, 3, 4, 7]), "0,2-4,7");
        assert_eq!((numbers(""), list(&[])), (vec![], String::new()));
        assert_eq!([mask(&[]), mask(&[0, 1, 3]), mask(&[4]), mask(&[35, 0])], ["0", "b", "10", "8,00000001"]);
        assert_eq!(numbers("x,1-99999999999999999999,3-1"), [0; 0]);
    }
}
