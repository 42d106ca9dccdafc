/* What the peer programs for Fast DDS 2 and 3 have in common: the adapter of peer.h. The file of a version includes this one
 * once, after it has defined what differs between them:
 *   OK, Duration, kReceiveBuffer
 *   Data                       one sample in the form that the product writes and reads
 *   type_name, make_type       of the types in interop.idl
 *   offer, accept              set DATA_REPRESENTATION of a writer and of a reader
 *   is_written                 whether DataWriter::write succeeded
 *   prepare_filter             what a content filter needs apart from the type */
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace {
DomainParticipant *participant;
Publisher *publisher;
Subscriber *subscriber;
}  // namespace

struct endpoint : public DataWriterListener, public DataReaderListener {
  std::string id;
  bool on_demand = false;
  std::unique_ptr<Data> outgoing; /* of a writer, which peer.c uses from one thread */
  Topic *topic = nullptr;
  ContentFilteredTopic *filtered = nullptr;
  DataWriter *writer = nullptr;
  DataReader *reader = nullptr;
  std::mutex mutex; /* guards what follows: on_data_available may run in two threads at once */
  std::unique_ptr<Data> incoming;
  std::map<InstanceHandle_t, std::pair<uint32_t, std::string>> keys; /* an invalid sample brings its handle only */

  void on_publication_matched(DataWriter *, const PublicationMatchedStatus &status) override {
    report_matched(id.c_str(), status.current_count, status.total_count);
  }
  void on_subscription_matched(DataReader *, const SubscriptionMatchedStatus &status) override {
    report_matched(id.c_str(), status.current_count, status.total_count);
  }
  void on_offered_incompatible_qos(DataWriter *, const OfferedIncompatibleQosStatus &status) override {
    report_incompatible(id.c_str(), static_cast<int>(status.last_policy_id), static_cast<int>(status.total_count));
  }
  void on_requested_incompatible_qos(DataReader *, const RequestedIncompatibleQosStatus &status) override {
    report_incompatible(id.c_str(), static_cast<int>(status.last_policy_id), static_cast<int>(status.total_count));
  }
  void on_offered_deadline_missed(DataWriter *, const OfferedDeadlineMissedStatus &status) override {
    report_deadline_missed(id.c_str(), static_cast<int>(status.total_count));
  }
  void on_requested_deadline_missed(DataReader *, const RequestedDeadlineMissedStatus &status) override {
    report_deadline_missed(id.c_str(), static_cast<int>(status.total_count));
  }
  void on_sample_lost(DataReader *, const SampleLostStatus &status) override { report_lost(id.c_str(), status.total_count); }
  void on_sample_rejected(DataReader *, const SampleRejectedStatus &status) override {
    report_rejected(id.c_str(), static_cast<int>(status.total_count));
  }

  void on_data_available(DataReader *from) override {
    if (!on_demand) take(from);
  }

  void take(DataReader *from) {
    std::lock_guard<std::mutex> guard(mutex);
    SampleInfo info;
    while (from->take_next_sample(incoming->get(), &info) == OK) {
      const enum instance_state state = info.instance_state == ALIVE_INSTANCE_STATE                ? INSTANCE_ALIVE
                                        : info.instance_state == NOT_ALIVE_DISPOSED_INSTANCE_STATE ? INSTANCE_DISPOSED
                                                                                                   : INSTANCE_NO_WRITERS;
      const int64_t source_ns = info.source_timestamp.to_ns();
      if (info.valid_data) {
        const struct sample &view = incoming->view();
        keys[info.instance_handle] = {view.key, view.name ? view.name : ""};
        report_sample(id.c_str(), &view, true, true, state, source_ns);
      } else {
        const auto known = keys.find(info.instance_handle);
        struct sample key {};
        if (known != keys.end()) {
          key.key = known->second.first;
          key.name = known->second.second.empty() ? nullptr : known->second.second.c_str();
        }
        report_sample(id.c_str(), &key, false, known != keys.end(), state, source_ns);
      }
    }
  }
};

namespace {

/* The settings that DataWriterQos and DataReaderQos have in common. */
template <typename Qos>
void common_qos(Qos *qos, const endpoint_spec *spec) {
  qos->reliability().kind = spec->reliable ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
  qos->durability().kind = spec->durability == DURABILITY_TRANSIENT         ? TRANSIENT_DURABILITY_QOS
                           : spec->durability == DURABILITY_TRANSIENT_LOCAL ? TRANSIENT_LOCAL_DURABILITY_QOS
                                                                 : VOLATILE_DURABILITY_QOS;
  qos->history().kind = spec->history_depth ? KEEP_LAST_HISTORY_QOS : KEEP_ALL_HISTORY_QOS;
  if (spec->history_depth) qos->history().depth = spec->history_depth;
  qos->resource_limits().max_samples = 0; /* no limit; the default is 5000 of at most 10 instances */
  qos->resource_limits().max_instances = 0;
  qos->resource_limits().max_samples_per_instance = 0;
  if (spec->deadline_ms) qos->deadline().period = Duration(spec->deadline_ms / 1000.0);
  if (spec->lease_ms) qos->liveliness().lease_duration = Duration(spec->lease_ms / 1000.0);
  if (spec->strength >= 0) qos->ownership().kind = EXCLUSIVE_OWNERSHIP_QOS;
}

std::vector<DataRepresentationId_t> representations(const endpoint_spec *spec) {
  switch (spec->representation) {
    case XCDR1: return {XCDR_DATA_REPRESENTATION};
    case XCDR2: return {XCDR2_DATA_REPRESENTATION};
    default: return {XCDR_DATA_REPRESENTATION, XCDR2_DATA_REPRESENTATION};
  }
}

const char *create_writer(const endpoint_spec *spec, endpoint *endpoint) {
  DataWriterQos qos = publisher->get_default_datawriter_qos();
  common_qos(&qos, spec);
  qos.reliability().max_blocking_time = Duration(spec->block_ms / 1000.0);
  offer(&qos, representations(spec));
  qos.writer_data_lifecycle().autodispose_unregistered_instances = spec->autodispose;
  if (spec->lifespan_ms) qos.lifespan().duration = Duration(spec->lifespan_ms / 1000.0);
  if (spec->lease_ms) qos.liveliness().announcement_period = Duration(spec->lease_ms / 3000.0);
  if (spec->strength >= 0) qos.ownership_strength().value = static_cast<uint32_t>(spec->strength);
  /* in synchronous mode fragments are refused */
  qos.publish_mode().kind = spec->synchronous ? SYNCHRONOUS_PUBLISH_MODE : ASYNCHRONOUS_PUBLISH_MODE;
  endpoint->writer = publisher->create_datawriter(endpoint->topic, qos, endpoint, StatusMask::all());
  return endpoint->writer ? nullptr : "create_datawriter failed";
}

const char *create_reader(const endpoint_spec *spec, endpoint *endpoint) {
  DataReaderQos qos = subscriber->get_default_datareader_qos();
  common_qos(&qos, spec);
  accept(&qos, representations(spec));
  TopicDescription *topic = endpoint->topic;
  if (spec->filter_below) {
    prepare_filter(spec->kind, spec->appendable);
    endpoint->filtered = participant->create_contentfilteredtopic(std::string(spec->id) + "_filtered", endpoint->topic, "seq < %0",
                                                                  {std::to_string(spec->filter_below)});
    if (!endpoint->filtered) return "create_contentfilteredtopic failed";
    topic = endpoint->filtered;
  }
  endpoint->reader = subscriber->create_datareader(topic, qos, endpoint, StatusMask::all());
  return endpoint->reader ? nullptr : "create_datareader failed";
}

const char *end_instance(endpoint *endpoint, const struct sample *key, bool dispose) {
  Data &data = *endpoint->outgoing;
  data.set_key(*key);
  const auto code = dispose ? endpoint->writer->dispose(data.get(), HANDLE_NIL)
                            : endpoint->writer->unregister_instance(data.get(), HANDLE_NIL);
  return code == OK ? nullptr : dispose ? "dispose failed" : "unregister_instance failed";
}

}  // namespace

extern "C" {

const char *adapter_open(const struct options *options) {
  auto log = std::make_unique<StdoutErrConsumer>(); /* standard output belongs to the line protocol */
  log->stderr_threshold(Log::Kind::Info);
  Log::ClearConsumers();
  Log::RegisterConsumer(std::move(log));
  /* Those of a default profile, if the environment names one. */
  auto *factory = DomainParticipantFactory::get_instance();
  factory->load_profiles();
  DomainParticipantQos qos = factory->get_default_participant_qos();
  qos.name("takt-interop");
  /* As much as the kernel allows: best-effort samples of 4 MB are lost in what it gives by default. */
  qos.transport().listen_socket_buffer_size = kReceiveBuffer;
  if (*options->peer || options->max_message_bytes) {
    auto udp = std::make_shared<UDPv4TransportDescriptor>();
    if (*options->address) udp->interfaceWhiteList.emplace_back(options->address);
    if (options->max_message_bytes) udp->maxMessageSize = options->max_message_bytes;
    qos.transport().use_builtin_transports = false;
    qos.transport().user_transports.push_back(udp);
  }
  if (*options->peer) {
    Locator_t peer;
    IPLocator::setIPv4(peer, options->peer);
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
  }
  if (*options->enclave) {
    const std::string files = std::string("file://") + options->enclave + "/";
    auto set = [&qos](const char *name, const std::string &value) { qos.properties().properties().emplace_back(name, value); };
    const std::string auth = "builtin.PKI-DH", access = "builtin.Access-Permissions";
    set("dds.sec.auth.plugin", auth);
    set("dds.sec.access.plugin", access);
    set("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
    for (auto [name, file] : {std::pair{"identity_ca", "identity_ca.cert.pem"}, {"identity_certificate", "cert.pem"}, {"private_key", "key.pem"}})
      set(("dds.sec.auth." + auth + "." + name).c_str(), files + file);
    for (auto [name, file] :
         {std::pair{"permissions_ca", "permissions_ca.cert.pem"}, {"governance", "governance.p7s"}, {"permissions", "permissions.p7s"}})
      set(("dds.sec.access." + access + "." + name).c_str(), files + file);
  }
  participant = factory->create_participant(options->domain, qos);
  if (!participant) return "create_participant failed";
  publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  for (int kind = 0; kind < KINDS; kind++)
    for (bool appendable : {false, true}) make_type(static_cast<enum kind>(kind), appendable).register_type(participant);
  return publisher && subscriber ? nullptr : "create_publisher or create_subscriber failed";
}

void adapter_close(void) {
  participant->delete_contained_entities();
  DomainParticipantFactory::get_instance()->delete_participant(participant);
}

const char *adapter_create(bool writer, const struct endpoint_spec *spec, struct endpoint **created) {
  auto made = std::make_unique<endpoint>();
  made->id = spec->id;
  made->on_demand = spec->on_demand;
  (writer ? made->outgoing : made->incoming) = std::make_unique<Data>(*spec);
  made->topic = dynamic_cast<Topic *>(participant->lookup_topicdescription(spec->topic));
  if (!made->topic)
    made->topic = participant->create_topic(spec->topic, type_name(spec->kind, spec->appendable), TOPIC_QOS_DEFAULT);
  if (!made->topic) return "create_topic failed";
  const char *why = writer ? create_writer(spec, made.get()) : create_reader(spec, made.get());
  if (!why) *created = made.release();
  return why;
}

void adapter_take(struct endpoint *endpoint) { endpoint->take(endpoint->reader); }

void adapter_delete(struct endpoint *endpoint) {
  if (endpoint->writer) publisher->delete_datawriter(endpoint->writer);
  if (endpoint->reader) subscriber->delete_datareader(endpoint->reader);
  if (endpoint->filtered) participant->delete_contentfilteredtopic(endpoint->filtered);
  participant->delete_topic(endpoint->topic); /* refused as long as another endpoint has it */
  delete endpoint;
}

const char *adapter_write(struct endpoint *endpoint, const struct sample *from) {
  endpoint->outgoing->set(*from);
  return is_written(endpoint->writer->write(endpoint->outgoing->get())) ? nullptr : "write failed";
}
const char *adapter_dispose(struct endpoint *endpoint, const struct sample *key) { return end_instance(endpoint, key, true); }
const char *adapter_unregister(struct endpoint *endpoint, const struct sample *key) { return end_instance(endpoint, key, false); }

const char *adapter_wait_acknowledged(struct endpoint *endpoint, int timeout_ms) {
  const auto code = endpoint->writer->wait_for_acknowledgments(Duration(timeout_ms / 1000.0));
  return code == OK ? nullptr : "not acknowledged in time";
}
}
