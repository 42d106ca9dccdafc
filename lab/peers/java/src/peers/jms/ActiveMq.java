package peers.jms;

import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQConnectionMetaData;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import peers.Agent;
import peers.Link;
import peers.Options;

/** Apache ActiveMQ Classic. */
public final class ActiveMq implements Agent.System {
    /** Of the pages "Performance Tuning" and "Connection Configuration URI" of ActiveMQ Classic. */
    private static final String TUNED_CLIENT = "?jms.useAsyncSend=true&jms.dispatchAsync=false"
        + "&jms.alwaysSessionAsync=false&jms.optimizeAcknowledge=true&jms.copyMessageOnSend=false"
        + "&wireFormat.tightEncodingEnabled=false&wireFormat.tcpNoDelayEnabled=true&jms.watchTopicAdvisories=false";
    private static final String TUNED_BROKER =
        "?wireFormat.tightEncodingEnabled=false&wireFormat.tcpNoDelayEnabled=true";

    public static void main(String[] arguments) {
        Agent.run(new ActiveMq(), arguments);
    }

    @Override
    public String name() {
        return "jms-activemq";
    }

    @Override
    public String version() {
        return ActiveMQConnectionMetaData.PROVIDER_VERSION;
    }

    @Override
    public String transports() {
        return "default,tuned";
    }

    @Override
    public Options.Notify fastest(Options options) {
        return Options.Notify.LISTENER;
    }

    private static boolean isTuned(Options options) {
        return options.transport.equals("tuned");
    }

    @Override
    public Link connect(Options options) throws Exception {
        String url = "tcp://" + options.broker + (isTuned(options) ? TUNED_CLIENT : "");
        return new JmsLink(new ActiveMQConnectionFactory(url), options, isTuned(options));
    }

    @Override
    public void serve(Options options, Runnable ready) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("takt");
        broker.setPersistent(false);
        broker.setUseShutdownHook(false);
        broker.setDataDirectory(Agent.temporaryDirectory("takt-activemq").toString());
        if (isTuned(options)) {
            broker.setUseJmx(false);
            broker.setAdvisorySupport(false);
            PolicyEntry policy = new PolicyEntry();
            policy.setOptimizedDispatch(true);
            PolicyMap policies = new PolicyMap();
            policies.setDefaultEntry(policy);
            broker.setDestinationPolicy(policies);
        }
        broker.addConnector("tcp://" + options.broker + (isTuned(options) ? TUNED_BROKER : ""));
        broker.start();
        broker.waitUntilStarted();
        ready.run();
        broker.waitUntilStopped();
    }
}
