package peers.jms;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.HashSet;
import java.util.Set;
import java.util.UUID;
import peers.Link;
import peers.Options;
import peers.Sample;

/**
 * Topics of any JMS provider. Octets are a BytesMessage, complex samples a StreamMessage. JMS does not tell a
 * publisher of its subscribers: a query on the topic `Match` makes them answer.
 */
final class JmsLink implements Link {
    /** Delay between two queries for readers. */
    private static final long QUERY_MS = 10;

    private final Connection connection;
    private final String prefix;
    private final boolean polls;
    private final int acknowledgeMode;
    private final boolean disablesIds;
    private final Session querySession;
    private final MessageProducer queries;
    private final Session answerSession;
    private final MessageProducer answers;
    private final Set<String> readers = new HashSet<>();
    private final String identity = UUID.randomUUID().toString();
    private String readTopic;
    private String writtenTopic;
    private Session writeSession;
    private MessageProducer producer;
    private MessageConsumer consumer;

    JmsLink(ConnectionFactory factory, Options options, boolean tuned) throws JMSException {
        connection = factory.createConnection();
        prefix = "takt." + options.domain + ".";
        polls = options.notify == Options.Notify.POLL;
        acknowledgeMode = options.reliable && !tuned ? Session.AUTO_ACKNOWLEDGE : Session.DUPS_OK_ACKNOWLEDGE;
        disablesIds = tuned;
        querySession = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        answerSession = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        queries = producer(querySession, "Match");
        answers = producer(answerSession, "Match");
    }

    private MessageProducer producer(Session session, String topic) throws JMSException {
        MessageProducer made = session.createProducer(session.createTopic(prefix + topic));
        made.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        made.setDisableMessageID(disablesIds);
        made.setDisableMessageTimestamp(disablesIds);
        return made;
    }

    @Override
    public void open(String writes, String reads, Listener listener) throws JMSException {
        writtenTopic = writes;
        readTopic = reads;
        if (writes != null) {
            writeSession = connection.createSession(false, acknowledgeMode);
            producer = producer(writeSession, writes);
        }
        if (reads != null) {
            Session session = connection.createSession(false, acknowledgeMode);
            Topic topic = session.createTopic(prefix + reads);
            consumer = session.createConsumer(topic);
            if (listener != null) {
                consumer.setMessageListener(message -> hand(message, listener));
            }
        }
        answerSession.createConsumer(answerSession.createTopic(prefix + "Match")).setMessageListener(this::onMatch);
        connection.start();
    }

    private static void hand(Message message, Listener listener) {
        try {
            listener.onSample(decode(message));
        } catch (Exception e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    private void onMatch(Message message) {
        try {
            String[] words = ((TextMessage) message).getText().split(" ");
            if (words[0].equals("query") && words[1].equals(readTopic)) {
                answers.send(answerSession.createTextMessage("reader " + readTopic + " " + identity));
            } else if (words[0].equals("reader") && words[1].equals(writtenTopic)) {
                synchronized (readers) {
                    readers.add(words[2]);
                    readers.notifyAll();
                }
            }
        } catch (JMSException e) {
            throw new IllegalStateException(e.getMessage(), e);
        }
    }

    @Override
    public boolean awaitReaders(int wanted, long waitMs) throws JMSException, InterruptedException {
        long deadline = System.nanoTime() + waitMs * 1_000_000;
        synchronized (readers) {
            while (readers.size() < wanted && System.nanoTime() < deadline) {
                queries.send(querySession.createTextMessage("query " + writtenTopic));
                readers.wait(QUERY_MS);
            }
            return readers.size() >= wanted;
        }
    }

    @Override
    public void write(Sample sample) throws JMSException {
        producer.send(encode(sample));
    }

    private Message encode(Sample sample) throws JMSException {
        if (sample.octets != null) {
            BytesMessage message = writeSession.createBytesMessage();
            message.writeBytes(sample.octets);
            return message;
        }
        StreamMessage message = writeSession.createStreamMessage();
        message.writeInt(sample.groups.length);
        for (Sample.Group group : sample.groups) {
            message.writeInt(group.names.length);
            for (int i = 0; i < group.names.length; i++) {
                message.writeString(group.names[i]);
                message.writeInt(group.numbers[i]);
            }
        }
        return message;
    }

    private static Sample decode(Message message) throws JMSException {
        if (message instanceof BytesMessage bytes) {
            byte[] octets = new byte[(int) bytes.getBodyLength()];
            bytes.readBytes(octets);
            return new Sample(octets);
        }
        StreamMessage stream = (StreamMessage) message;
        Sample.Group[] groups = new Sample.Group[stream.readInt()];
        for (int g = 0; g < groups.length; g++) {
            groups[g] = new Sample.Group(stream.readInt());
            for (int i = 0; i < groups[g].names.length; i++) {
                groups[g].names[i] = stream.readString();
                groups[g].numbers[i] = stream.readInt();
            }
        }
        return new Sample(groups);
    }

    @Override
    public Sample read(long waitMs) throws JMSException {
        Message message = null;
        if (polls) {
            long deadline = System.nanoTime() + waitMs * 1_000_000;
            while (message == null && System.nanoTime() < deadline) {
                message = consumer.receiveNoWait();
            }
        } else {
            message = consumer.receive(waitMs);
        }
        return message == null ? null : decode(message);
    }

    @Override
    public void close() {
        try {
            connection.close();
        } catch (JMSException e) {
            // The process ends next; the broker drops what is left.
        }
    }
}
