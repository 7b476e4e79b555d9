package dev.strandline.conformance;

import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;

import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.JaasUtils;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;

/**
 * The {@link ClusterInstance} a test gets: one broker (id 0) in a process outside, whatever number the test asks for.
 *
 * <p>What the original looks up inside the brokers is found out by an Admin client instead. What can't be found out from
 * outside throws {@link CurrentTest.InternalsException}.
 */
public final class ExternalCluster implements ClusterInstance {
    private static final int BROKERS = 1;
    private static final long WAIT_MS = 60_000;

    /** Replication settings, which one broker can only satisfy at 1. */
    private static final Set<String> CAPPED = Set.of(
        "offsets.topic.replication.factor", "transaction.state.log.replication.factor", "transaction.state.log.min.isr",
        "share.coordinator.state.topic.replication.factor", "share.coordinator.state.topic.min.isr",
        "default.replication.factor", "min.insync.replicas");

    private final ClusterConfig config;
    private final Type type;
    private BrokerProcess broker;
    private Admin prober;
    private boolean stopped;
    /** The test itself has taken the broker down. */
    private boolean down;

    public ExternalCluster(ClusterConfig config, Type type) {
        this.config = config;
        this.type = type;
    }

    //---- life of the process ----//

    @Override
    public synchronized void start() {
        if (broker != null) return;
        Map<String, String> properties = properties();
        if (config.numBrokers() > BROKERS) CurrentTest.note("brokers=" + config.numBrokers() + ">" + BROKERS);
        try {
            broker = new BrokerProcess(CurrentTest.freshDir(), properties, features());
            broker.start();
            waitForReadyBrokers();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while the broker started", e);
        }
    }

    @Override
    public synchronized void stop() {
        if (stopped) return;
        stopped = true;
        if (prober != null) prober.close(java.time.Duration.ZERO);
        if (broker == null) return;
        boolean died = !down && !broker.alive();
        broker.end();
        if (died) throw new AssertionError("the broker process ended by itself during the test");
        if (broker.panicked()) throw new AssertionError("the broker panicked during the test");
    }

    @Override
    public boolean started() {
        return broker != null;
    }

    @Override
    public boolean stopped() {
        return stopped;
    }

    @Override
    public void shutdownBroker(int brokerId) {
        known(brokerId);
        down = true;
        broker.terminate();
    }

    @Override
    public void startBroker(int brokerId) {
        known(brokerId);
        broker.start();
        down = false;
        try {
            waitForReadyBrokers();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    boolean alive() {
        return broker != null && broker.alive();
    }

    private void known(int brokerId) {
        if (brokerId != 0) throw new IllegalArgumentException("Unknown brokerId " + brokerId);
    }

    private Map<String, String> properties() {
        Map<String, String> result = new TreeMap<>();
        result.put("node.id", "0");
        CAPPED.stream().filter(key -> key.contains(".topic.") || key.contains(".log.")).forEach(key -> result.put(key, "1"));
        if (config.brokerSecurityProtocol() == SecurityProtocol.SASL_PLAINTEXT) {
            result.put("listener.security.protocol.map", "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT");
            result.put("sasl.enabled.mechanisms", "PLAIN");
            result.put("sasl.mechanism.inter.broker.protocol", "PLAIN");
            result.put("listener.name.plaintext.plain.sasl.jaas.config",
                "org.apache.kafka.common.security.plain.PlainLoginModule required"
                + " username=\"" + JaasUtils.KAFKA_PLAIN_ADMIN + "\" password=\"" + JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD + "\""
                + " user_" + JaasUtils.KAFKA_PLAIN_ADMIN + "=\"" + JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD + "\""
                + " user_" + JaasUtils.KAFKA_PLAIN_USER1 + "=\"" + JaasUtils.KAFKA_PLAIN_USER1_PASSWORD + "\";");
            result.put("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
            result.put("allow.everyone.if.no.acl.found", "false");
            // ANONYMOUS is the controller's own plain listener.
            result.put("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN + ";User:ANONYMOUS");
        } else if (config.brokerSecurityProtocol() != SecurityProtocol.PLAINTEXT) {
            throw CurrentTest.internals("security protocol " + config.brokerSecurityProtocol());
        }
        Map<String, String> asked = new HashMap<>(config.serverProperties());
        asked.putAll(config.perServerOverrideProperties().getOrDefault(0, Map.of()));
        // Also what only a controller of its own would get.
        config.perServerOverrideProperties().values().forEach(ExternalCluster::refusePlugins);
        refusePlugins(asked);
        asked.forEach((key, value) -> {
            if (key.contains("listener")) throw CurrentTest.internals("own " + key);
            if (CAPPED.contains(key) && Integer.parseInt(value.trim()) > BROKERS) {
                CurrentTest.note(key + "=" + value + ">" + BROKERS);
                value = Integer.toString(BROKERS);
            }
            result.put(key, value);
        });
        return result;
    }

    /** Feature levels that the test wants, as {@code name=level} separated by blanks. */
    private String features() {
        Map<String, String> wanted = new TreeMap<>();
        if (config.metadataVersion() != MetadataVersion.latestTesting()) {
            wanted.put(MetadataVersion.FEATURE_NAME, Short.toString(config.metadataVersion().featureLevel()));
        }
        config.features().forEach((feature, level) -> wanted.put(feature.featureName(), Short.toString(level)));
        String text = wanted.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).collect(Collectors.joining(" "));
        if (!text.isEmpty()) CurrentTest.note("features:" + text.replace(' ', ','));
        return text;
    }

    private static void refusePlugins(Map<String, String> properties) {
        properties.forEach((key, value) -> {
            if (isTestClass(value)) throw CurrentTest.internals("plug-in " + key);
        });
    }

    /** Whether a property names a class that comes with the tests: a plug-in, which only a broker in Java can load. */
    private static boolean isTestClass(String value) {
        if (!value.startsWith("org.apache.kafka.")) return false;
        try {
            Class<?> found = Class.forName(value.trim(), false, ExternalCluster.class.getClassLoader());
            return found.getProtectionDomain().getCodeSource().getLocation().getPath().endsWith("-test.jar");
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    //---- addresses and clients ----//

    @Override
    public String bootstrapServers() {
        if (broker == null) throw new IllegalStateException("the broker has not been started");
        return BrokerProcess.HOST + ":" + broker.port;
    }

    @Override
    public List<Integer> brokerBoundPorts() {
        return List.of(broker.port);
    }

    int port() {
        return broker.port;
    }

    /** An Admin that brings replication down to the one broker there is, when the test counts on more. */
    @Override
    public Admin admin(Map<String, Object> configs, boolean usingBootstrapControllers) {
        if (usingBootstrapControllers) throw CurrentTest.internals("bootstrap.controllers");
        Admin admin = ClusterInstance.super.admin(configs, false);
        return config.numBrokers() > BROKERS ? CappedAdmin.wrap(admin, BROKERS, config.numBrokers()) : admin;
    }

    private synchronized Admin prober() {
        if (prober == null) {
            Map<String, Object> configs = new HashMap<>();
            configs.put(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
            configs.put(AdminClientConfig.CLIENT_ID_CONFIG, "conformance-prober");
            configs.put(AdminClientConfig.RECONNECT_BACKOFF_MS_CONFIG, 20L);
            configs.put(AdminClientConfig.RECONNECT_BACKOFF_MAX_MS_CONFIG, 200L);
            configs.put(AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, 5_000);
            configs.put(AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG, 10_000);
            prober = Admin.create(setClientSaslConfig(configs));
        }
        return prober;
    }

    //---- waiting ----//

    private static void await(String what, Callable<Boolean> condition) throws InterruptedException {
        long deadline = System.currentTimeMillis() + WAIT_MS;
        Throwable last = null;
        while (true) {
            try {
                if (condition.call()) return;
            } catch (InterruptedException e) {
                throw e;
            } catch (ExecutionException e) {
                last = e.getCause();
            } catch (Exception e) {
                last = e;
            }
            if (System.currentTimeMillis() > deadline) throw new AssertionError("not so after " + WAIT_MS + " ms: " + what, last);
            Thread.sleep(20);
        }
    }

    @Override
    public void waitForReadyBrokers() throws InterruptedException {
        await("the broker lists itself", () -> nodes().size() >= BROKERS);
    }

    Collection<Node> nodes() throws Exception {
        return prober().describeCluster().nodes().get(15, TimeUnit.SECONDS);
    }

    Optional<Integer> partitionCount(String topic) throws Exception {
        try {
            TopicDescription found = prober().describeTopics(List.of(topic)).topicNameValues().get(topic).get(15, TimeUnit.SECONDS);
            boolean led = found.partitions().stream().allMatch(p -> p.leader() != null && !p.leader().isEmpty());
            return led ? Optional.of(found.partitions().size()) : Optional.of(-1);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof UnknownTopicOrPartitionException) return Optional.empty();
            throw e;
        }
    }

    /** As the original, but a refusal fails the test at once instead of after the wait for the topic. */
    @Override
    public void createTopic(String topic, int partitions, short replicas, Map<String, String> configs) throws InterruptedException {
        create(new NewTopic(topic, partitions, replicas).configs(configs));
        waitTopicCreation(topic, partitions);
    }

    @Override
    public void createTopicWithAssignment(String topic, Map<Integer, List<Integer>> assignment) throws InterruptedException {
        create(new NewTopic(topic, assignment));
        waitTopicCreation(topic, assignment.size());
    }

    private void create(NewTopic topic) throws InterruptedException {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(topic)).all().get();
        } catch (ExecutionException e) {
            if (!(e.getCause() instanceof TopicExistsException)) throw new AssertionError("can't create " + topic, e.getCause());
        }
    }

    @Override
    public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
        if (partitions <= 0) throw new IllegalArgumentException("Partition count must be > 0, but was " + partitions);
        await(topic + " has " + partitions + " partitions", () -> partitionCount(topic).equals(Optional.of(partitions)));
    }

    @Override
    public void waitTopicDeletion(String topic) throws InterruptedException {
        await(topic + " is gone", () -> partitionCount(topic).isEmpty());
    }

    @Override
    public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
        AtomicReference<Set<AccessControlEntry>> seen = new AtomicReference<>(Set.of());
        await("the ACLs are " + entries, () -> {
            seen.set(prober().describeAcls(filter).values().get(15, TimeUnit.SECONDS).stream()
                .map(binding -> binding.entry()).collect(Collectors.toSet()));
            return seen.get().equals(Set.copyOf(entries));
        });
    }

    /** Nothing to look at from outside: gives a broker that applies metadata a moment after it has committed it time to. */
    @Override
    public void ensureConsistentMetadata() throws InterruptedException {
        Thread.sleep(200);
    }

    @Override
    public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) throws InterruptedException {
        ensureConsistentMetadata();
    }

    //---- what the cluster is ----//

    @Override
    public Type type() {
        return type;
    }

    @Override
    public ClusterConfig config() {
        return config;
    }

    @Override
    public Map<Integer, KafkaBroker> brokers() {
        return Map.of(0, StubBroker.of(this));
    }

    @Override
    public Set<Integer> brokerIds() {
        return Set.of(0);
    }

    @Override
    public ListenerName clientListener() {
        return config.brokerListenerName();
    }

    @Override
    public ListenerName controllerListenerName() {
        return config.controllerListenerName();
    }

    @Override
    public String clusterId() {
        try {
            return prober().describeCluster().clusterId().get(15, TimeUnit.SECONDS);
        } catch (Exception e) {
            throw new IllegalStateException("no cluster id", e);
        }
    }

    @Override
    public Set<GroupProtocol> supportedGroupProtocols() {
        String protocols = config.serverProperties().getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer");
        return protocols.contains("consumer") ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
    }

    @Override
    public Map<Integer, ControllerServer> controllers() {
        throw CurrentTest.internals("controllers()");
    }

    @Override
    public Set<Integer> controllerIds() {
        throw CurrentTest.internals("controllerIds()");
    }

    @Override
    public String bootstrapControllers() {
        throw CurrentTest.internals("bootstrapControllers()");
    }

    @Override
    public List<Integer> controllerBoundPorts() {
        throw CurrentTest.internals("controllerBoundPorts()");
    }

    @Override
    public List<Authorizer> authorizers() {
        throw CurrentTest.internals("authorizers()");
    }

    @Override
    public Optional<FaultHandlerException> firstFatalException() {
        return Optional.empty();
    }

    @Override
    public Optional<FaultHandlerException> firstNonFatalException() {
        return Optional.empty();
    }
}
