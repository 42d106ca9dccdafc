//! Content-filtered topics: accepted samples arrive, rejected ones have no effect.

use crate::support::*;
use takt::dynamic::DynamicTypeSupport;
use takt::qos::*;
use takt::*;

/// A writer and a content-filtered reader, each with its own participant.
struct Filtered {
    pair: Pair<Shape>,
    topic: ContentFilteredTopic<Shape>,
}

fn filtered(runtime: Runtime, reader: DataReaderQos, expression: &str, parameters: &[&str]) -> Filtered {
    let domain = domain();
    let publisher = on_loopback(domain, runtime).build().expect("participant");
    let subscriber = on_loopback(domain, runtime).build().expect("participant");
    let writer = create_writer(&publisher, "Topic", reliable_writer(History::KeepAll));
    let topic = subscriber.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let topic = subscriber.create_contentfilteredtopic("Filtered", &topic, expression, parameters).expect("filter");
    let reader = subscriber
        .create_subscriber(SubscriberQos::default())
        .and_then(|subscriber| subscriber.create_datareader(&topic, reader))
        .expect("reader");
    let pair = Pair { publisher, subscriber, writer, reader };
    pair.wait_until("match", || {
        !pair.writer.matched_subscriptions().expect("open").is_empty()
            && !pair.reader.matched_publications().expect("open").is_empty()
    });
    Filtered { pair, topic }
}

impl Filtered {
    fn write(&self, color: &str, numbers: impl IntoIterator<Item = i32>) {
        for x in numbers {
            self.pair.writer.write(&Shape::new(color, x)).expect("room");
        }
    }

    /// Waits until the reader has received or rejected all samples written.
    fn await_delivery(&self) {
        let mut is_acknowledged = || self.pair.writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok();
        self.pair.wait_until("acknowledgment", &mut is_acknowledged);
    }

    /// Waits until the writer's participant knows these parameters. Until then it may omit samples
    /// that pass now.
    fn await_parameters(&self, parameters: &[&str]) {
        let is_known = || {
            let readers = self.pair.publisher.discovered_subscriptions().expect("open");
            readers.iter().any(|r| r.content_filter.as_ref().is_some_and(|f| f.expression_parameters == parameters))
        };
        self.pair.wait_until("announcement", is_known);
    }

    fn taken(&self) -> Vec<(String, i32)> {
        let samples = self.pair.reader.take(1000).expect("open");
        samples.into_iter().filter_map(|sample| sample.data).map(|shape| (shape.color, shape.x)).collect()
    }
}

#[test]
fn only_accepted_samples_arrive_and_parameters_can_change() {
    for runtime in RUNTIMES {
        let expression = "x >= %0 AND (color = 'RED' OR color LIKE %1)";
        let filtered = filtered(runtime, reliable_reader(History::KeepAll), expression, &["5", "'%UE'"]);
        for color in ["RED", "GREEN", "BLUE"] {
            filtered.write(color, 3..8);
        }
        filtered.await_delivery();
        let red_and_blue = ["RED", "BLUE"].iter().flat_map(|color| (5..8).map(|x| (color.to_string(), x)));
        assert_eq!(filtered.taken(), red_and_blue.collect::<Vec<_>>(), "{runtime:?}");

        filtered.topic.set_expression_parameters(&["7", "GREEN"]).expect("they fit");
        assert_eq!(filtered.topic.expression_parameters(), ["7", "GREEN"]);
        filtered.await_parameters(&["7", "GREEN"]);
        for color in ["RED", "GREEN", "BLUE"] {
            filtered.write(color, 6..9);
        }
        filtered.await_delivery();
        let red_and_green = ["RED", "GREEN"].iter().flat_map(|color| (7..9).map(|x| (color.to_string(), x)));
        assert_eq!(filtered.taken(), red_and_green.collect::<Vec<_>>(), "{runtime:?}");
    }
}

#[test]
fn rejected_samples_displace_nothing_and_take_no_space() {
    let keep_last = filtered(Runtime::Inline, reliable_reader(History::KeepLast(1)), "x > 0", &[]);
    keep_last.write("RED", [7, 0, -1]);
    keep_last.await_delivery();
    assert_eq!(keep_last.taken(), [("RED".to_owned(), 7)]);

    let mut qos = reliable_reader(History::KeepAll);
    qos.resource_limits.max_samples = Some(2);
    let keep_all = filtered(Runtime::Inline, qos, "x > 0", &[]);
    keep_all.write("RED", [1, 2]);
    keep_all.write("GREEN", [0; 50]);
    keep_all.await_delivery();
    assert_eq!(keep_all.pair.reader.sample_rejected_status().expect("open").total_count, 0);
    assert_eq!(keep_all.taken().len(), 2);
}

#[test]
fn dispose_and_unregister_are_not_filtered() {
    let filtered = filtered(Runtime::Inline, reliable_reader(History::KeepAll), "x > 0", &[]);
    filtered.write("RED", [1, 0]);
    filtered.pair.writer.dispose(&Shape::new("RED", 0)).expect("room");
    filtered.await_delivery();
    let samples = filtered.pair.reader.take(10).expect("open");
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[1].info.instance_state, InstanceState::NotAliveDisposed);
    assert!(!samples[1].info.valid_data);
    // A rejected sample does not make the instance alive again.
    filtered.write("RED", [0]);
    filtered.await_delivery();
    assert!(filtered.pair.reader.take(10).expect("open").is_empty());
    filtered.write("RED", [1]);
    filtered.await_delivery();
    assert_eq!(filtered.pair.reader.take(10).expect("open")[0].info.instance_state, InstanceState::Alive);
}

#[test]
fn filter_is_announced_again_when_parameters_change() {
    let filtered = filtered(Runtime::Inline, reliable_reader(History::KeepAll), "x > %0", &["5"]);
    let announced = || {
        let readers = filtered.pair.publisher.discovered_subscriptions().expect("open");
        readers.into_iter().find(|reader| reader.guid == filtered.pair.reader.guid()).and_then(|r| r.content_filter)
    };
    let filter = announced().expect("announced");
    assert_eq!(filter.content_filtered_topic_name, "Filtered");
    assert_eq!(filter.related_topic_name, "Topic");
    assert_eq!(filter.filter_class_name, "DDSSQL");
    assert_eq!(filter.filter_expression, "x > %0");
    assert_eq!(filter.expression_parameters, ["5"]);
    filtered.topic.set_expression_parameters(&["'6'"]).expect_err("no number");
    filtered.topic.set_expression_parameters(&["6"]).expect("a number");
    filtered.await_parameters(&["6"]);
    assert_eq!(filtered.pair.writer.publication_matched_status().expect("open").total_count, 1, "the match goes on");
}

#[test]
fn invalid_expressions_and_parameters_are_rejected() {
    let participant = on_loopback(domain(), Runtime::Inline).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let create = |name: &str, expression: &str, parameters: &[&str]| {
        participant.create_contentfilteredtopic(name, &topic, expression, parameters).map(drop)
    };
    for (name, expression, parameters) in [
        ("Filtered", "speed > 5", &[][..]),
        ("Filtered", "x > 'five'", &[]),
        ("Filtered", "x >", &[]),
        ("Filtered", "x > %1", &["5"]),
        ("Filtered", "x > %0", &["five"]),
        ("", "x > 5", &[]),
        ("Topic", "x > 5", &[]),
    ] {
        let error = create(name, expression, parameters).expect_err(expression);
        assert!(matches!(error, Error::BadParameter { .. }), "{error}");
    }
    let long = "R".repeat(8000);
    let long = [&*long; 5];
    assert!(matches!(create("Filtered", "color = %0", &long), Err(Error::OutOfResources { .. })));
    assert!(create("Filtered", "", &[]).is_ok(), "the empty expression filters nothing");
}

#[test]
fn filter_of_32_kib_is_accepted_and_one_octet_more_rejected() {
    let participant = on_loopback(domain(), Runtime::Inline).build().expect("participant");
    let topic = participant.create_topic::<Shape>("Topic", TopicQos::default()).expect("topic");
    let create = |parameters: &[String]| {
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        participant.create_contentfilteredtopic("Filtered", &topic, "color = %0", &parameters).map(drop)
    };
    let text = |octets: usize| format!("'{}'", "R".repeat(octets - 2));
    // Each parameter counts 8 octets more than its length; the expression counts 10.
    let mut parameters = vec![text(8_184), text(8_184), text(8_184), text(8_174)];
    create(&parameters).expect("32,768 octets");
    parameters[3] = text(8_175);
    let refused = create(&parameters).expect_err("32,769 octets");
    assert!(matches!(refused, Error::OutOfResources { value: 32_768, .. }), "{refused}");
}

#[test]
fn dynamic_readers_filter_by_content() {
    let domain = domain();
    let publisher = on_loopback(domain, Runtime::Inline).build().expect("participant");
    let participant = on_loopback(domain, Runtime::Inline).build().expect("participant");
    let writer = create_writer(&publisher, "Topic", reliable_writer(History::KeepAll));
    let subscriber = participant.create_subscriber(SubscriberQos::default()).expect("subscriber");
    let type_ = DynamicTypeSupport::of::<Shape>().expect("a type");
    let create = |type_, expression: &str| {
        let qos = reliable_reader(History::KeepAll);
        subscriber.create_filtered_dynamic_datareader("Topic", type_, qos, expression, &["2"])
    };
    let reader = create(&type_, "x > %0").expect("reader");
    assert!(create(&DynamicTypeSupport::opaque("Shape", true), "x > %0").is_err());
    let all = [&publisher, &participant];
    wait_until(&all, "match", || writer.matched_subscriptions().expect("open").len() == 1);
    let receive = |numbers: &[i32], count| {
        numbers.iter().for_each(|&x| writer.write(&Shape::new("RED", x)).expect("room"));
        wait_until(&all, "acknowledgment", || writer.wait_for_acknowledgments(takt::Duration::ZERO).is_ok());
        assert_eq!(reader.take(10).expect("open").len(), count);
    };
    receive(&[1, 2, 3, 4], 2);
    reader.set_expression_parameters(&["0"]).expect("a number");
    wait_until(&all, "announcement", || {
        let readers = publisher.discovered_subscriptions().expect("open");
        readers.iter().any(|r| r.content_filter.as_ref().is_some_and(|f| f.expression_parameters == ["0"]))
    });
    receive(&[0, 1], 1);
    let unfiltered = subscriber.create_dynamic_datareader("Topic", &type_, DataReaderQos::default()).expect("reader");
    assert!(unfiltered.set_expression_parameters(&["1"]).is_err());
}

#[test]
fn writer_omits_rejected_samples_for_any_quoting_of_parameters() {
    for parameter in ["RED", "'RED'"] {
        let filtered = filtered(Runtime::Inline, reliable_reader(History::KeepAll), "color = %0", &[parameter]);
        filtered.write("RED", 0..5);
        filtered.write("BLUE", 0..20);
        filtered.await_delivery();
        assert_eq!(filtered.taken().len(), 5);
        let counters = filtered.pair.publisher.diagnostics().counters().expect("open");
        assert_eq!(counters.withheld_samples, 20, "{parameter}");
        filtered.topic.set_expression_parameters(&["BLUE"]).expect("it fits");
        filtered.await_parameters(&["BLUE"]);
        filtered.write("BLUE", 0..3);
        filtered.await_delivery();
        assert_eq!(filtered.taken().len(), 3);
    }
}

#[test]
fn expensive_filters_are_evaluated_by_the_reader_only() {
    let costly = vec!["x = 1"; 17].join(" OR ");
    let filtered = filtered(Runtime::Inline, reliable_reader(History::KeepAll), &costly, &[]);
    filtered.write("RED", 0..5);
    filtered.await_delivery();
    assert_eq!(filtered.taken().len(), 1);
    assert_eq!(filtered.pair.publisher.diagnostics().counters().expect("open").withheld_samples, 0);
    assert_eq!(filtered.pair.subscriber.diagnostics().counters().expect("open").filtered_samples, 4);
}
