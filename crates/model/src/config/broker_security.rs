//! Broker configs: who may connect and what they may do.

use super::key::{
    ConfigKey, UNSET, boolean, class, double, int, list, long, password, short, string,
};

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    string("authorizer.class.name", "").security().doc("The class that decides who may do what."),
    string("super.users", UNSET).security().doc("Who may do everything."),
    boolean("allow.everyone.if.no.acl.found", "false")
        .security()
        .doc("Whether a resource without rules is open to all."),
    class(
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    )
    .per_broker()
    .security()
    .doc("The class that names who is connected."),
    string("security.inter.broker.protocol", "PLAINTEXT")
        .one_of(&["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
        .security()
        .doc("The protocol that brokers speak among themselves."),
    string("security.providers", UNSET)
        .security()
        .doc("Java classes that provide security algorithms."),
    int("connection.failed.authentication.delay.ms", "100")
        .at_least(0)
        .security()
        .doc("How long a connection stays open after a failed login."),
    long("connections.max.reauth.ms", "0").security().doc("How long a login is good for."),
    password("delegation.token.secret.key", UNSET)
        .security()
        .doc("The key that delegation tokens are signed with."),
    long("delegation.token.max.lifetime.ms", "604800000")
        .at_least(1)
        .security()
        .doc("How long a delegation token can be renewed."),
    long("delegation.token.expiry.time.ms", "86400000")
        .at_least(1)
        .security()
        .doc("How long a delegation token is good for without renewal."),
    long("delegation.token.expiry.check.interval.ms", "3600000")
        .at_least(1)
        .security()
        .doc("How often expired delegation tokens are looked for."),
    list("sasl.enabled.mechanisms", "GSSAPI")
        .per_broker()
        .security()
        .doc("The SASL mechanisms that clients may use."),
    password("sasl.jaas.config", UNSET)
        .per_broker()
        .security()
        .doc("Login modules and their options."),
    string("sasl.mechanism.inter.broker.protocol", "GSSAPI")
        .per_broker()
        .security()
        .doc("The SASL mechanism between brokers."),
    string("sasl.mechanism.controller.protocol", "GSSAPI")
        .security()
        .doc("The SASL mechanism of the controller."),
    int("sasl.server.max.receive.size", "524288")
        .security()
        .doc("The largest SASL message that is taken."),
    class("sasl.client.callback.handler.class", UNSET)
        .security()
        .doc("The class that answers a SASL client's questions."),
    class("sasl.server.callback.handler.class", UNSET)
        .security()
        .doc("The class that answers a SASL server's questions."),
    class("sasl.login.callback.handler.class", UNSET)
        .security()
        .doc("The class that answers a login's questions."),
    class("sasl.login.class", UNSET).security().doc("The class that logs in."),
    int("sasl.login.connect.timeout.ms", UNSET)
        .security()
        .doc("How long a connection to the identity provider may take."),
    int("sasl.login.read.timeout.ms", UNSET)
        .security()
        .doc("How long a read from the identity provider may take."),
    short("sasl.login.refresh.buffer.seconds", "300")
        .per_broker()
        .security()
        .doc("How long before its end a login is renewed at the latest."),
    short("sasl.login.refresh.min.period.seconds", "60")
        .per_broker()
        .security()
        .doc("The shortest time between two renewals of a login."),
    double("sasl.login.refresh.window.factor", "0.8")
        .per_broker()
        .security()
        .doc("The part of its life after which a login is renewed."),
    double("sasl.login.refresh.window.jitter", "0.05")
        .per_broker()
        .security()
        .doc("How much the renewal of a login varies."),
    long("sasl.login.retry.backoff.ms", "100")
        .security()
        .doc("The first wait after a failed login."),
    long("sasl.login.retry.backoff.max.ms", "10000")
        .security()
        .doc("The longest wait after a failed login."),
    string("sasl.kerberos.service.name", UNSET)
        .per_broker()
        .security()
        .doc("The service name of this broker in Kerberos."),
    string("sasl.kerberos.kinit.cmd", "/usr/bin/kinit")
        .per_broker()
        .security()
        .doc("The command that gets a Kerberos ticket."),
    long("sasl.kerberos.min.time.before.relogin", "60000")
        .per_broker()
        .security()
        .doc("The shortest time between two Kerberos logins."),
    list("sasl.kerberos.principal.to.local.rules", "DEFAULT")
        .per_broker()
        .security()
        .doc("How Kerberos names become user names."),
    double("sasl.kerberos.ticket.renew.jitter", "0.05")
        .per_broker()
        .security()
        .doc("How much the renewal of a ticket varies."),
    double("sasl.kerberos.ticket.renew.window.factor", "0.8")
        .per_broker()
        .security()
        .doc("The part of its life after which a ticket is renewed."),
    boolean("sasl.oauthbearer.allow.unverified.audience", "false")
        .security()
        .doc("Whether tokens for anybody are taken."),
    boolean("sasl.oauthbearer.allow.unverified.issuer", "false")
        .security()
        .doc("Whether tokens of any issuer are taken."),
    string("sasl.oauthbearer.assertion.algorithm", "RS256")
        .one_of_any_case(&["ES256", "RS256"])
        .security()
        .doc("The algorithm that assertions are signed with."),
    string("sasl.oauthbearer.assertion.claim.aud", UNSET)
        .security()
        .doc("The audience of an assertion."),
    int("sasl.oauthbearer.assertion.claim.exp.seconds", "300")
        .between(0, 86_400)
        .security()
        .doc("How long an assertion is good for."),
    string("sasl.oauthbearer.assertion.claim.iss", UNSET)
        .security()
        .doc("The issuer of an assertion."),
    boolean("sasl.oauthbearer.assertion.claim.jti.include", "false")
        .security()
        .doc("Whether an assertion carries an id."),
    int("sasl.oauthbearer.assertion.claim.nbf.seconds", "60")
        .between(0, 3600)
        .security()
        .doc("How long before now an assertion begins."),
    string("sasl.oauthbearer.assertion.claim.sub", UNSET)
        .security()
        .doc("The subject of an assertion."),
    string("sasl.oauthbearer.assertion.file", UNSET)
        .security()
        .doc("A file that holds an assertion."),
    string("sasl.oauthbearer.assertion.private.key.file", UNSET)
        .security()
        .doc("The key file that assertions are signed with."),
    password("sasl.oauthbearer.assertion.private.key.passphrase", UNSET)
        .security()
        .doc("The pass phrase of that key file."),
    string("sasl.oauthbearer.assertion.template.file", UNSET)
        .security()
        .doc("A file with the claims of an assertion."),
    string("sasl.oauthbearer.client.credentials.client.id", UNSET)
        .security()
        .doc("The client id at the identity provider."),
    password("sasl.oauthbearer.client.credentials.client.secret", UNSET)
        .security()
        .doc("The client secret at the identity provider."),
    int("sasl.oauthbearer.clock.skew.seconds", "30")
        .security()
        .doc("How much clocks may differ when tokens are checked."),
    list("sasl.oauthbearer.expected.audience", "")
        .security()
        .doc("The audiences that a token must name."),
    string("sasl.oauthbearer.expected.issuer", UNSET)
        .security()
        .doc("The issuer that a token must name."),
    long("sasl.oauthbearer.jwks.endpoint.refresh.ms", "3600000")
        .security()
        .doc("How often the provider's keys are fetched."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "100")
        .security()
        .doc("The first wait after a failed fetch of keys."),
    long("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "10000")
        .security()
        .doc("The longest wait after a failed fetch of keys."),
    string("sasl.oauthbearer.jwks.endpoint.url", UNSET)
        .security()
        .doc("Where the provider's keys are."),
    class(
        "sasl.oauthbearer.jwt.retriever.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    )
    .security()
    .doc("The class that gets tokens."),
    class(
        "sasl.oauthbearer.jwt.validator.class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    )
    .security()
    .doc("The class that checks tokens."),
    string("sasl.oauthbearer.scope", UNSET).security().doc("The scope that is asked for."),
    string("sasl.oauthbearer.scope.claim.name", "scope")
        .security()
        .doc("The claim that holds the scope."),
    string("sasl.oauthbearer.sub.claim.name", "sub")
        .security()
        .doc("The claim that holds the subject."),
    string("sasl.oauthbearer.token.endpoint.url", UNSET).security().doc("Where tokens are issued."),
    boolean("ssl.allow.dn.changes", "false")
        .security()
        .doc("Whether a new certificate may have another name."),
    boolean("ssl.allow.san.changes", "false")
        .security()
        .doc("Whether a new certificate may have other alternative names."),
    list("ssl.cipher.suites", "")
        .per_broker()
        .security()
        .doc("The cipher suites that are offered."),
    string("ssl.client.auth", "none")
        .one_of(&["required", "requested", "none"])
        .per_broker()
        .security()
        .doc("Whether clients must show a certificate."),
    list("ssl.enabled.protocols", "TLSv1.2,TLSv1.3")
        .per_broker()
        .security()
        .doc("The TLS versions that are offered."),
    string("ssl.endpoint.identification.algorithm", "https")
        .per_broker()
        .security()
        .doc("How host names are checked."),
    class("ssl.engine.factory.class", UNSET)
        .per_broker()
        .security()
        .doc("The class that makes TLS engines."),
    password("ssl.key.password", UNSET)
        .per_broker()
        .security()
        .doc("The pass phrase of the private key."),
    string("ssl.keymanager.algorithm", "SunX509")
        .per_broker()
        .security()
        .doc("The Java algorithm of the key manager."),
    password("ssl.keystore.certificate.chain", UNSET)
        .per_broker()
        .security()
        .doc("The certificate chain of this broker, as PEM text."),
    password("ssl.keystore.key", UNSET)
        .per_broker()
        .security()
        .doc("The private key of this broker, as PEM text."),
    string("ssl.keystore.location", UNSET)
        .per_broker()
        .security()
        .doc("The file with the certificate and key of this broker."),
    password("ssl.keystore.password", UNSET)
        .per_broker()
        .security()
        .doc("The password of that file."),
    string("ssl.keystore.type", "JKS").per_broker().security().doc("The format of that file."),
    string("ssl.principal.mapping.rules", "DEFAULT")
        .security()
        .doc("How certificate names become user names."),
    string("ssl.protocol", "TLSv1.3").per_broker().security().doc("The TLS version to begin with."),
    string("ssl.provider", UNSET).per_broker().security().doc("The Java provider of TLS."),
    string("ssl.secure.random.implementation", UNSET)
        .per_broker()
        .security()
        .doc("The Java source of randomness."),
    string("ssl.trustmanager.algorithm", "PKIX")
        .per_broker()
        .security()
        .doc("The Java algorithm of the trust manager."),
    password("ssl.truststore.certificates", UNSET)
        .per_broker()
        .security()
        .doc("The certificates that are trusted, as PEM text."),
    string("ssl.truststore.location", UNSET)
        .per_broker()
        .security()
        .doc("The file with the certificates that are trusted."),
    password("ssl.truststore.password", UNSET)
        .per_broker()
        .security()
        .doc("The password of that file."),
    string("ssl.truststore.type", "JKS").per_broker().security().doc("The format of that file."),
];
