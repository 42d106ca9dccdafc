//! Options of the application: one table, parsed with the syntax of GNU `getopt_long`.
//!
//! Short options may be joined (`-Sb`), with their value attached or not (`-t Square`, `-tSquare`).
//! Long options take `--name value` or `--name=value` and may be abbreviated while they stay
//! unique. Periods are in milliseconds, sizes in bytes.

use std::time::Duration;

use crate::arguments::{Argument, Arguments, Spec};

/// Role of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Publisher (`-P`).
    Publisher,
    /// Subscriber (`-S`).
    Subscriber,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Publisher => "publisher",
            Self::Subscriber => "subscriber",
        }
    }
}

/// DURABILITY (`-D`), with the letters of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Option value `v`.
    Volatile,
    /// Option value `l`.
    TransientLocal,
    /// Option value `t`.
    Transient,
    /// Option value `p`.
    Persistent,
}

/// Access scope of PRESENTATION (`--access-scope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Option value `i`.
    Instance,
    /// Option value `t`.
    Topic,
    /// Option value `g`.
    Group,
}

/// Operation on the instances when the publisher ends (`--final-instance-state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalState {
    /// Option value `u`.
    Unregister,
    /// Option value `d`.
    Dispose,
}

/// HISTORY (`-k`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// Option value `0`.
    KeepAll,
    /// Option value above 0: the depth.
    KeepLast(u32),
}

/// Values of all options. Zero turns a period, a count or a size off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub role: Role,
    pub verbose: bool,
    pub domain_id: u32,
    pub reliable: bool,
    /// HISTORY; `None` is the product's default.
    pub history: Option<History>,
    pub deadline: Duration,
    /// Strength of EXCLUSIVE ownership; `None` is SHARED.
    pub ownership_strength: Option<i32>,
    pub topic: String,
    /// Key of a publisher, or filter value of a subscriber.
    pub color: Option<String>,
    pub partition: Option<String>,
    pub durability: Durability,
    /// XCDR version, 1 or 2.
    pub xcdr_version: u8,
    pub print_samples: bool,
    /// Size of the shape; at 0 it grows by one before each iteration.
    pub shape_size: i32,
    pub read_not_take: bool,
    pub write_period: Duration,
    pub read_period: Duration,
    pub time_filter: Duration,
    pub lifespan: Duration,
    /// Number of iterations; `None` runs until stopped.
    pub iterations: Option<u64>,
    pub instances: u32,
    pub topics: u32,
    pub final_state: Option<FinalState>,
    pub scope: Scope,
    pub coherent: bool,
    pub ordered: bool,
    /// Number of iterations in a coherent set.
    pub coherent_samples: u64,
    pub payload_size: usize,
    /// Whether one call takes the samples of all instances, instead of one call per instance.
    pub take_all_instances: bool,
    pub announcement_period: Duration,
    pub fragment_size: u32,
    pub filter: Option<String>,
    pub size_modulo: i32,
}

/// Action that the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Prints the usage.
    Help,
    /// Prints these warnings, then runs.
    Run(Box<Options>, Vec<String>),
}

/// An option of [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Help,
    Verbosity,
    Publish,
    Subscribe,
    Domain,
    BestEffort,
    Reliable,
    KeepLast,
    Deadline,
    OwnershipStrength,
    Topic,
    Color,
    Partition,
    Durability,
    Representation,
    PrintSamples,
    ShapeSize,
    Read,
    WritePeriod,
    ReadPeriod,
    TimeFilter,
    Lifespan,
    Iterations,
    Instances,
    Topics,
    FinalState,
    Scope,
    Coherent,
    Ordered,
    CoherentSamples,
    PayloadSize,
    TakeRead,
    Announcement,
    FragmentSize,
    Filter,
    SizeModulo,
}

const PUB: Option<Role> = Some(Role::Publisher);
const SUB: Option<Role> = Some(Role::Subscriber);

/// One option: its syntax, its value, the role that it applies to, and its description.
struct Row {
    spec: Spec<Key>,
    /// Role that the option applies to; `None` for both.
    role: Option<Role>,
    help: &'static str,
}

const fn short(key: Key, letter: char, value: Option<&'static str>, role: Option<Role>, help: &'static str) -> Row {
    let long = if matches!(key, Key::Help) { Some("help") } else { None };
    Row { spec: Spec { key, short: Some(letter), long, value }, role, help }
}

const fn long(
    key: Key,
    name: &'static str,
    value: Option<&'static str>,
    role: Option<Role>,
    help: &'static str,
) -> Row {
    Row { spec: Spec { key, short: None, long: Some(name), value }, role, help }
}

/// All options, in the order of the usage.
const TABLE: &[Row] = &[
    short(Key::Help, 'h', None, None, "print this"),
    short(Key::Verbosity, 'v', Some("e|d"), None, "verbosity: errors (default), debug"),
    short(Key::Publish, 'P', None, None, "publish samples"),
    short(Key::Subscribe, 'S', None, None, "subscribe to samples"),
    short(Key::Domain, 'd', Some("int"), None, "domain id (default 0)"),
    short(Key::BestEffort, 'b', None, None, "RELIABILITY BEST_EFFORT"),
    short(Key::Reliable, 'r', None, None, "RELIABILITY RELIABLE (default)"),
    short(Key::KeepLast, 'k', Some("depth"), None, "HISTORY: 0 KEEP_ALL, otherwise KEEP_LAST of this depth"),
    short(Key::Deadline, 'f', Some("ms"), None, "DEADLINE period (0: infinite)"),
    short(
        Key::OwnershipStrength,
        's',
        Some("int"),
        None,
        "OWNERSHIP: -1 SHARED (default), otherwise EXCLUSIVE of this strength",
    ),
    short(Key::Topic, 't', Some("name"), None, "topic"),
    short(Key::Color, 'c', Some("color"), None, "color to publish (default BLUE), or to filter for"),
    short(Key::Partition, 'p', Some("name"), None, "PARTITION"),
    short(
        Key::Durability,
        'D',
        Some("v|l|t|p"),
        None,
        "DURABILITY: VOLATILE (default), TRANSIENT_LOCAL, TRANSIENT, PERSISTENT",
    ),
    short(Key::Representation, 'x', Some("1|2"), None, "DATA_REPRESENTATION: XCDR (default), XCDR2"),
    short(Key::PrintSamples, 'w', None, PUB, "print the samples that are written"),
    short(Key::ShapeSize, 'z', Some("int"), PUB, "shape size (default 20; 0: grows with each iteration)"),
    short(Key::Read, 'R', None, SUB, "read samples instead of taking them"),
    long(Key::WritePeriod, "write-period", Some("ms"), PUB, "time between writes (default 33)"),
    long(Key::ReadPeriod, "read-period", Some("ms"), SUB, "time between reads (default 100)"),
    long(Key::TimeFilter, "time-filter", Some("ms"), SUB, "TIME_BASED_FILTER minimum_separation (default 0)"),
    long(Key::Lifespan, "lifespan", Some("ms"), PUB, "LIFESPAN (0: infinite)"),
    long(Key::Iterations, "num-iterations", Some("int"), None, "iterations before the end (default: no end)"),
    long(Key::Instances, "num-instances", Some("int"), PUB, "instances, COLOR, COLOR1 ... (default 1)"),
    long(Key::Topics, "num-topics", Some("int"), None, "topics, TOPIC, TOPIC1 ... (default 1)"),
    long(Key::FinalState, "final-instance-state", Some("u|d"), PUB, "unregister or dispose the instances at the end"),
    long(
        Key::Scope,
        "access-scope",
        Some("i|t|g"),
        None,
        "PRESENTATION access_scope: INSTANCE (default), TOPIC, GROUP",
    ),
    long(Key::Coherent, "coherent", None, None, "PRESENTATION coherent_access"),
    long(Key::Ordered, "ordered", None, None, "PRESENTATION ordered_access"),
    long(Key::CoherentSamples, "coherent-sample-count", Some("int"), PUB, "iterations in a coherent set, from 2"),
    long(Key::PayloadSize, "additional-payload-size", Some("bytes"), PUB, "octets of value 255 in each sample"),
    long(Key::TakeRead, "take-read", None, SUB, "take() or read() instead of one call for each instance"),
    long(
        Key::Announcement,
        "periodic-announcement",
        Some("ms"),
        None,
        "period of participant announcements (0: default)",
    ),
    long(Key::FragmentSize, "datafrag-size", Some("bytes"), None, "size of RTPS fragments (0: default)"),
    long(Key::Filter, "cft", Some("expression"), SUB, "filter of a content-filtered topic"),
    long(Key::SizeModulo, "size-modulo", Some("int"), PUB, "with -z 0: sizes 1 to this, over and over"),
];

/// Returns the usage, one line per option.
pub fn usage() -> String {
    let mut text = String::from("usage: takt-shape-main -P|-S -t TOPIC [OPTION]...\n");
    for Row { spec, help, .. } in TABLE {
        text.push_str(&format!("  {:<34} {help}\n", spec.usage()));
    }
    text
}

/// Parses the command line, without the program name.
///
/// # Errors
/// Describes the first error of the command line.
pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Command, String> {
    let specs: Vec<Spec<Key>> = TABLE.iter().map(|row| row.spec).collect();
    let mut draft = Draft::new();
    for argument in Arguments::new(&specs, words) {
        let argument = argument?;
        if argument.key == Key::Help {
            return Ok(Command::Help);
        }
        draft.set(&argument)?;
        draft.given.push(argument.key);
    }
    draft.finish()
}

/// Options read so far.
struct Draft {
    options: Options,
    role: Option<Role>,
    given: Vec<Key>,
}

impl Draft {
    fn new() -> Self {
        let options = Options {
            role: Role::Publisher,
            verbose: false,
            domain_id: 0,
            reliable: true,
            history: None,
            deadline: Duration::ZERO,
            ownership_strength: None,
            topic: String::new(),
            color: None,
            partition: None,
            durability: Durability::Volatile,
            xcdr_version: 1,
            print_samples: false,
            shape_size: 20,
            read_not_take: false,
            write_period: Duration::from_millis(33),
            read_period: Duration::from_millis(100),
            time_filter: Duration::ZERO,
            lifespan: Duration::ZERO,
            iterations: None,
            instances: 1,
            topics: 1,
            final_state: None,
            scope: Scope::Instance,
            coherent: false,
            ordered: false,
            coherent_samples: 0,
            payload_size: 0,
            take_all_instances: false,
            announcement_period: Duration::ZERO,
            fragment_size: 0,
            filter: None,
            size_modulo: 0,
        };
        Self { options, role: None, given: Vec::new() }
    }

    fn set(&mut self, argument: &Argument<Key>) -> Result<(), String> {
        let options = &mut self.options;
        match argument.key {
            Key::Help => {}
            Key::Publish => self.role = one_role(self.role, Role::Publisher)?,
            Key::Subscribe => self.role = one_role(self.role, Role::Subscriber)?,
            Key::Verbosity => options.verbose = argument.choice(&[("e", false), ("d", true)])?,
            Key::Domain => options.domain_id = argument.number(0, i64::from(i32::MAX))?,
            Key::BestEffort => options.reliable = false,
            Key::Reliable => options.reliable = true,
            Key::KeepLast => options.history = Some(history(argument.number(0, i64::from(i32::MAX))?)),
            Key::Deadline => options.deadline = milliseconds(argument)?,
            Key::OwnershipStrength => {
                let strength: i32 = argument.number(-1, i64::from(i32::MAX))?;
                options.ownership_strength = (strength >= 0).then_some(strength);
            }
            Key::Topic => options.topic = argument.text(),
            Key::Color => options.color = Some(argument.text()),
            Key::Partition => options.partition = Some(argument.text()),
            Key::Durability => options.durability = durability(argument)?,
            Key::Representation => options.xcdr_version = argument.choice(&[("1", 1), ("2", 2)])?,
            Key::PrintSamples => options.print_samples = true,
            Key::ShapeSize => options.shape_size = argument.number(0, i64::from(i32::MAX))?,
            Key::Read => options.read_not_take = true,
            Key::WritePeriod => options.write_period = milliseconds(argument)?,
            Key::ReadPeriod => options.read_period = milliseconds(argument)?,
            Key::TimeFilter => options.time_filter = milliseconds(argument)?,
            Key::Lifespan => options.lifespan = milliseconds(argument)?,
            Key::Iterations => options.iterations = Some(argument.number(1, i64::MAX)?),
            Key::Instances => options.instances = argument.number(1, MANY)?,
            Key::Topics => options.topics = argument.number(1, MANY)?,
            Key::FinalState => self.set_final_state(argument)?,
            Key::Scope => {
                options.scope = argument.choice(&[("i", Scope::Instance), ("t", Scope::Topic), ("g", Scope::Group)])?;
            }
            Key::Coherent => options.coherent = true,
            Key::Ordered => options.ordered = true,
            Key::CoherentSamples => options.coherent_samples = argument.number(2, i64::MAX)?,
            Key::PayloadSize => options.payload_size = argument.number(1, PAYLOAD_SIZE_MAX)?,
            Key::TakeRead => options.take_all_instances = true,
            Key::Announcement => options.announcement_period = milliseconds(argument)?,
            Key::FragmentSize => options.fragment_size = argument.number(0, i64::from(u16::MAX))?,
            Key::Filter => options.filter = Some(argument.text()),
            Key::SizeModulo => options.size_modulo = argument.number(1, i64::from(i32::MAX))?,
        }
        Ok(())
    }

    fn set_final_state(&mut self, argument: &Argument<Key>) -> Result<(), String> {
        let state = argument.choice(&[("u", FinalState::Unregister), ("d", FinalState::Dispose)])?;
        if self.options.final_state.is_some_and(|former| former != state) {
            return Err(format!("{} is either u or d", argument.name));
        }
        self.options.final_state = Some(state);
        Ok(())
    }

    /// Checks the conditions that involve several options.
    fn finish(mut self) -> Result<Command, String> {
        let role = self.role.ok_or("either -P or -S is required")?;
        if self.options.topic.is_empty() {
            return Err("-t with the name of a topic is required".to_owned());
        }
        self.options.role = role;
        if role == Role::Subscriber && self.options.color.is_some() && self.options.filter.is_some() {
            return Err("-c and --cft are two filters; one subscriber has one".to_owned());
        }
        let mut warnings = self.misplaced(role);
        let options = &mut self.options;
        if role == Role::Publisher && options.color.is_none() {
            options.color = Some("BLUE".to_owned());
            warnings.push("warning: color was not specified, defaulting to \"BLUE\"".to_owned());
        }
        let presents = options.coherent || options.ordered;
        if self.given.contains(&Key::Scope) && !presents {
            warnings.push("warning: --access-scope ignored without --coherent or --ordered".to_owned());
        }
        if role == Role::Publisher && options.coherent_samples > 0 && !presents {
            warnings.push("warning: --coherent-sample-count ignored without --coherent or --ordered".to_owned());
        }
        if role == Role::Publisher && options.size_modulo > 0 && options.shape_size != 0 {
            warnings.push("warning: --size-modulo ignored without -z 0".to_owned());
        }
        if options.fragment_size > 0 {
            warnings.push("warning: --datafrag-size ignored: fragments are as long as a packet of the path".to_owned());
        }
        Ok(Command::Run(Box::new(self.options), warnings))
    }

    /// Returns a warning for each option that applies only to the other role.
    fn misplaced(&self, role: Role) -> Vec<String> {
        let foreign = |row: &&Row| row.role.is_some_and(|only| only != role) && self.given.contains(&row.spec.key);
        let rows = TABLE.iter().filter(foreign);
        rows.map(|row| format!("warning: {} ignored on {} applications", row.spec.name(), role.name())).collect()
    }
}

/// Upper bound of the number of instances and of topics.
const MANY: i64 = 1 << 16;
/// Upper bound of the payload. The length of a sequence has 32 bits, and a sample has further
/// members.
const PAYLOAD_SIZE_MAX: i64 = 1 << 30;

fn one_role(former: Option<Role>, role: Role) -> Result<Option<Role>, String> {
    if former.is_some_and(|former| former != role) {
        return Err("-P and -S exclude each other".to_owned());
    }
    Ok(Some(role))
}

fn history(depth: u32) -> History {
    if depth == 0 { History::KeepAll } else { History::KeepLast(depth) }
}

fn durability(argument: &Argument<Key>) -> Result<Durability, String> {
    argument.choice(&[
        ("v", Durability::Volatile),
        ("l", Durability::TransientLocal),
        ("t", Durability::Transient),
        ("p", Durability::Persistent),
    ])
}

fn milliseconds(argument: &Argument<Key>) -> Result<Duration, String> {
    argument.number(0, i64::from(i32::MAX)).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn run(line: &str) -> (Options, Vec<String>) {
        match parse(words(line)) {
            Ok(Command::Run(options, warnings)) => (*options, warnings),
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refusal(line: &str) -> String {
        parse(words(line)).expect_err("refused")
    }

    #[test]
    fn defaults_are_those_of_the_suite() {
        let (options, warnings) = run("-S -t Square");
        assert_eq!(warnings, Vec::<String>::new());
        assert_eq!(options, Options { role: Role::Subscriber, topic: "Square".to_owned(), ..Draft::new().options });
        assert!(options.reliable && options.history.is_none() && options.color.is_none());
        assert_eq!((options.domain_id, options.xcdr_version, options.shape_size), (0, 1, 20));
        assert_eq!((options.write_period.as_millis(), options.read_period.as_millis()), (33, 100));
    }

    #[test]
    fn publisher_without_color_uses_blue_and_warns() {
        let (options, warnings) = run("-P -t Square");
        assert_eq!(options.color.as_deref(), Some("BLUE"));
        assert_eq!(warnings, ["warning: color was not specified, defaulting to \"BLUE\""]);
    }

    #[test]
    fn every_option_sets_its_value() {
        let line = "-P -v d -d 7 -b -k 5 -f 250 -s 3 -t T -c RED -p p1 -D p -x 2 -w -z 0 --write-period 10 \
            --lifespan 300 --num-iterations 9 --num-instances 4 --num-topics 3 --final-instance-state d \
            --access-scope g --coherent --ordered --coherent-sample-count 3 --additional-payload-size 1000 \
            --periodic-announcement 500 --size-modulo 50";
        let (options, warnings) = run(line);
        assert_eq!(warnings, Vec::<String>::new());
        let ms = Duration::from_millis;
        let expected = Options {
            role: Role::Publisher,
            verbose: true,
            domain_id: 7,
            reliable: false,
            history: Some(History::KeepLast(5)),
            deadline: ms(250),
            ownership_strength: Some(3),
            topic: "T".to_owned(),
            color: Some("RED".to_owned()),
            partition: Some("p1".to_owned()),
            durability: Durability::Persistent,
            xcdr_version: 2,
            print_samples: true,
            shape_size: 0,
            write_period: ms(10),
            lifespan: ms(300),
            iterations: Some(9),
            instances: 4,
            topics: 3,
            final_state: Some(FinalState::Dispose),
            scope: Scope::Group,
            coherent: true,
            ordered: true,
            coherent_samples: 3,
            payload_size: 1000,
            announcement_period: ms(500),
            size_modulo: 50,
            ..Draft::new().options
        };
        assert_eq!(options, expected);
        let (options, warnings) = run("-S -t T -R --read-period 5 --time-filter 7 --take-read --cft x<3");
        assert_eq!(warnings, Vec::<String>::new());
        assert!(options.read_not_take && options.take_all_instances);
        assert_eq!((options.read_period, options.time_filter), (ms(5), ms(7)));
        assert_eq!(options.filter.as_deref(), Some("x<3"));
    }

    #[test]
    fn last_reliability_applies_and_zero_depth_keeps_all() {
        assert!(run("-S -t T -b -r").0.reliable);
        assert!(!run("-S -t T -r -b").0.reliable);
        assert_eq!(run("-S -t T -k 0").0.history, Some(History::KeepAll));
        assert_eq!(run("-S -t T -s -1").0.ownership_strength, None);
        assert_eq!(run("-S -t T -s 0").0.ownership_strength, Some(0));
    }

    #[test]
    fn options_of_the_other_role_give_warnings() {
        let (_, warnings) = run("-S -t T -z 0 --write-period 3 --lifespan 5");
        assert_eq!(
            warnings,
            [
                "warning: -z ignored on subscriber applications",
                "warning: --write-period ignored on subscriber applications",
                "warning: --lifespan ignored on subscriber applications",
            ]
        );
        let (_, warnings) = run("-P -t T -c RED --time-filter 10");
        assert_eq!(warnings, ["warning: --time-filter ignored on publisher applications"]);
    }

    #[test]
    fn options_without_their_prerequisite_give_warnings() {
        let (_, warnings) = run("-P -t T -c RED --access-scope t --coherent-sample-count 3 --size-modulo 4");
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(warnings[0].contains("--access-scope") && warnings[2].contains("-z 0"), "{warnings:?}");
    }

    #[test]
    fn contradictory_options_fail() {
        assert!(refusal("-t T").contains("-P or -S"));
        assert!(refusal("-P -S -t T").contains("exclude"));
        assert!(refusal("-P").contains("-t"));
        assert!(refusal("-S -t T -c RED --cft x=1").contains("two filters"));
        assert!(refusal("-P -t T --final-instance-state u --final-instance-state d").contains("either"));
    }

    #[test]
    fn values_out_of_bounds_fail() {
        assert!(refusal("-P -t T -d -1").contains("-d"));
        assert!(refusal("-P -t T -s -2").contains("-s"));
        assert!(refusal("-P -t T -x 3").contains("1 or 2"));
        assert!(refusal("-P -t T --num-instances 0").contains("--num-instances"));
        assert!(refusal("-P -t T --coherent-sample-count 1").contains("from 2"));
        assert!(refusal("-P -t T --datafrag-size 65536").contains("65535"));
        assert!(refusal("-P -t T -D x").contains("v, l, t or p"));
    }

    #[test]
    fn help_needs_no_other_option_and_lists_all() {
        assert_eq!(parse(words("-h")), Ok(Command::Help));
        assert_eq!(parse(words("--help")), Ok(Command::Help));
        let text = usage();
        assert_eq!(text.lines().count(), TABLE.len() + 1);
        assert!(text.contains("--additional-payload-size <bytes>"), "{text}");
    }

    #[test]
    fn short_options_match_the_suite() {
        let wanted = "hPSbrRwc:d:D:f:k:p:s:x:t:v:z:";
        let mut letters: Vec<char> = TABLE.iter().filter_map(|row| row.spec.short).collect();
        letters.sort_unstable();
        let mut expected: Vec<char> = wanted.chars().filter(|c| *c != ':').collect();
        expected.sort_unstable();
        assert_eq!(letters, expected);
        for row in TABLE.iter().filter(|row| row.spec.short.is_some()) {
            let letter = row.spec.short.expect("filtered");
            assert_eq!(row.spec.value.is_some(), wanted.contains(&format!("{letter}:")), "-{letter}");
        }
    }
}
