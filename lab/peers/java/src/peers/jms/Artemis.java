package peers.jms;

import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressFullMessagePolicy;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.utils.VersionLoader;
import peers.Agent;
import peers.Link;
import peers.Options;

/** Apache ActiveMQ Artemis. */
public final class Artemis implements Agent.System {
    /** Octets that an address holds before its producers block. */
    private static final long ADDRESS_MAX = 16 << 20;
    /** Of the chapter "Performance Tuning" of the Artemis user manual. */
    private static final String TUNED = "tcpNoDelay=true;tcpSendBufferSize=1048576;tcpReceiveBufferSize=1048576";

    public static void main(String[] arguments) {
        Agent.run(new Artemis(), arguments);
    }

    @Override
    public String name() {
        return "jms-artemis";
    }

    @Override
    public String version() {
        return VersionLoader.getVersion().getFullVersion();
    }

    @Override
    public String transports() {
        return "default,tuned";
    }

    @Override
    public Options.Notify fastest(Options options) {
        return Options.Notify.LISTENER;
    }

    private static String url(Options options) {
        String parameters = options.transport.equals("tuned") ? "?" + TUNED.replace(';', '&') : "";
        return "tcp://" + options.broker + parameters;
    }

    @Override
    public Link connect(Options options) throws Exception {
        boolean tuned = options.transport.equals("tuned");
        ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url(options));
        if (tuned) {
            factory.setBlockOnAcknowledge(false);
            factory.setCacheDestinations(true);
        }
        return new JmsLink(factory, options, tuned);
    }

    @Override
    public void serve(Options options, Runnable ready) throws Exception {
        String directory = Agent.temporaryDirectory("takt-artemis").toString();
        AddressSettings settings = new AddressSettings();
        settings.setAddressFullMessagePolicy(AddressFullMessagePolicy.BLOCK);
        settings.setMaxSizeBytes(ADDRESS_MAX);
        Configuration configuration = new ConfigurationImpl()
            .setPersistenceEnabled(false)
            .setSecurityEnabled(false)
            .setJournalDirectory(directory)
            .setBindingsDirectory(directory)
            .setLargeMessagesDirectory(directory)
            .setPagingDirectory(directory)
            .addAcceptorConfiguration("tcp", url(options))
            .addAddressSetting("#", settings);
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ().setConfiguration(configuration);
        broker.start();
        if (!broker.getActiveMQServer().isActive()) {
            throw new IllegalStateException("the broker does not start on " + options.broker);
        }
        ready.run();
        Thread.currentThread().join();
    }
}
