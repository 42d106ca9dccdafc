//! Multitopics.

use crate::support::*;
use takt::qos::*;
use takt::*;

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Position {
    #[dds(key)]
    flight: String,
    x: i32,
    z: f64,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Plan {
    #[dds(key)]
    flight: String,
    target: String,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct City {
    #[dds(key)]
    target: String,
    country: String,
}

#[derive(DdsType, Clone, Debug, Default, PartialEq)]
struct Flight {
    #[dds(key)]
    flight: String,
    height: f64,
    target: String,
    country: String,
}

struct World {
    participants: [DomainParticipant; 2],
    positions: DataWriter<Position>,
    plans: DataWriter<Plan>,
    cities: DataWriter<City>,
    reader: MultiTopicReader<Flight>,
    topic: MultiTopic<Flight>,
}

const EXPRESSION: &str = "SELECT flight, z AS height, target, country FROM Position NATURAL JOIN Plan \
                          NATURAL JOIN City WHERE height < %0;";

fn create(participant: &DomainParticipant, expression: &str, parameters: &[&str]) -> Result<MultiTopic<Flight>> {
    let positions = participant.create_topic::<Position>("Position", TopicQos::default())?;
    let plans = participant.create_topic::<Plan>("Plan", TopicQos::default())?;
    let cities = participant.create_topic::<City>("City", TopicQos::default())?;
    participant.create_multitopic("Flights", expression, parameters, &[&plans, &cities, &positions])
}

fn world() -> World {
    let domain = domain();
    let [publisher, subscriber] = [0; 2].map(|_| on_loopback(domain, Runtime::Inline).build().expect("participant"));
    let positions = create_writer(&publisher, "Position", reliable_writer(History::KeepAll));
    let plans = create_writer(&publisher, "Plan", reliable_writer(History::KeepAll));
    let cities = create_writer(&publisher, "City", reliable_writer(History::KeepAll));
    let topic = create(&subscriber, EXPRESSION, &["1000"]).expect("a multi-topic");
    let readers = subscriber.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let reader = readers.create_multitopic_datareader(&topic, &reliable_reader(History::KeepAll)).expect("reader");
    let world = World { participants: [publisher, subscriber], positions, plans, cities, reader, topic };
    world.wait_until("match", || {
        let readers = world.reader.constituents();
        readers.iter().all(|reader| reader.matched_publications().expect("open").len() == 1)
            && world.positions.matched_subscriptions().expect("open").len() == 1
            && world.plans.matched_subscriptions().expect("open").len() == 1
            && world.cities.matched_subscriptions().expect("open").len() == 1
    });
    world
}

impl World {
    fn wait_until(&self, what: &str, condition: impl FnMut() -> bool) {
        wait_until(&[&self.participants[0], &self.participants[1]], what, condition);
    }

    fn fly(&self, flight: &str, z: f64) {
        self.positions.write(&Position { flight: flight.into(), x: 1, z }).expect("room");
    }

    fn plan(&self, flight: &str, target: &str) {
        self.plans.write(&Plan { flight: flight.into(), target: target.into() }).expect("room");
    }

    fn city(&self, target: &str, country: &str) {
        self.cities.write(&City { target: target.into(), country: country.into() }).expect("room");
    }

    /// Takes the joined samples of everything written.
    fn taken(&self) -> Vec<(String, f64, String)> {
        self.wait_until("acknowledgment", || {
            let none = takt::Duration::ZERO;
            self.positions.wait_for_acknowledgments(none).is_ok()
                && self.plans.wait_for_acknowledgments(none).is_ok()
                && self.cities.wait_for_acknowledgments(none).is_ok()
        });
        let samples = self.reader.take(100).expect("open");
        samples.into_iter().filter_map(|sample| sample.data).map(|f| (f.flight, f.height, f.country)).collect()
    }
}

fn flight(flight: &str, height: f64, country: &str) -> (String, f64, String) {
    (flight.into(), height, country.into())
}

#[test]
fn joined_sample_is_produced_in_any_order_of_arrival() {
    let world = world();
    world.fly("LH1", 500.0);
    world.plan("LH1", "Rome");
    assert!(world.taken().is_empty(), "a topic is missing");
    world.city("Rome", "Italy");
    assert_eq!(world.taken(), [flight("LH1", 500.0, "Italy")]);
    world.fly("BA2", 600.0);
    assert!(world.taken().is_empty(), "no topic has the field");
    world.plan("BA2", "Rome");
    assert_eq!(world.taken(), [flight("BA2", 600.0, "Italy")]);
    // A new sample of a topic that both results depend on produces both results again.
    world.city("Rome", "Italia");
    let mut both = world.taken();
    both.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(both, [flight("BA2", 600.0, "Italia"), flight("LH1", 500.0, "Italia")]);
    assert_eq!(world.reader.lost(), 0);
}

#[test]
fn condition_applies_to_the_result_and_its_parameters_can_change() {
    let world = world();
    world.city("Rome", "Italy");
    world.plan("LH1", "Rome");
    world.fly("LH1", 1500.0);
    assert!(world.taken().is_empty());
    world.fly("LH1", 900.0);
    assert_eq!(world.taken(), [flight("LH1", 900.0, "Italy")]);
    world.topic.set_expression_parameters(&["high"]).expect_err("no number");
    world.topic.set_expression_parameters(&["2000"]).expect("a number");
    world.fly("LH1", 1500.0);
    assert_eq!(world.taken(), [flight("LH1", 1500.0, "Italy")]);
    assert_eq!(world.topic.expression_parameters(), ["2000"]);
}

#[test]
fn disposed_instance_is_no_longer_joined() {
    let world = world();
    world.city("Rome", "Italy");
    world.plan("LH1", "Rome");
    world.fly("LH1", 500.0);
    assert_eq!(world.taken().len(), 1);
    world.plans.dispose(&Plan { flight: "LH1".into(), ..Plan::default() }).expect("room");
    assert!(world.taken().is_empty());
    world.fly("LH1", 400.0);
    assert!(world.taken().is_empty(), "it has no plan any more");
    assert!(world.reader.read_conditions().iter().all(|condition| !condition.trigger_value().expect("open")));
}

#[test]
fn invalid_expressions_are_rejected() {
    let participant = on_loopback(domain(), Runtime::Inline).build().expect("participant");
    for (expression, parameters) in [
        ("SELECT * FROM Position", &[][..]),
        ("SELECT flight FROM Position NATURAL JOIN City", &[]),
        ("SELECT flight FROM Position NATURAL JOIN Nowhere", &[]),
        ("SELECT speed AS height FROM Position", &[]),
        ("SELECT z AS speed FROM Position", &[]),
        ("SELECT flight AS height FROM Position", &[]),
        ("SELECT flight FROM Position WHERE x > 1", &[]),
        ("SELECT flight FROM Position WHERE height > %0", &[]),
        ("flight = 'LH1'", &[]),
    ] {
        let error = create(&participant, expression, parameters).expect_err(expression);
        assert!(matches!(error, Error::BadParameter { .. }), "{expression}: {error}");
    }
    let many = ["Plan"; 9].join(" NATURAL JOIN ");
    let error = create(&participant, &format!("SELECT flight FROM {many}"), &[]).expect_err("too many");
    assert!(matches!(error, Error::OutOfResources { .. }), "{error}");
}
