//! TLS is a feature, since it needs OpenSSL. The certificates that are trusted are those of the system, or of `ssl.ca.location`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

/// Whether librdkafka was built with OpenSSL.
const HAS_TLS: bool = cfg!(feature = "tls");

/// The properties that name files in PEM.
const FILES: [&str; 3] = ["ssl.ca.location", "ssl.certificate.location", "ssl.key.location"];

/// What librdkafka and OpenSSL say, and what to do. OpenSSL does not say whether it does not accept the authority or the name.
const HINTS: [(&str, &str); 3] = [
    // The first bytes of an alert, taken for a length.
    ("Invalid response size", "if the broker expects TLS, write kafka+ssl://, or set security.protocol"),
    (
        "certificate verify failed",
        "the broker's certificate is not accepted: an authority of `ssl.ca.location` (without it, of the system) must have signed it, and it must \
         name the host that the client connects to, as the broker advertises it",
    ),
    (
        "SSL alert",
        "the broker refuses the client; it may ask for a certificate that an authority of its own has signed: `ssl.certificate.location` and \
         `ssl.key.location`, or certificate_file and key_file in the URL",
    ),
];

/// Where librdkafka finds the authorities, if the application does not say so. An OpenSSL that was built from source does not know
/// where the system has them, so librdkafka tries the usual places.
pub(crate) const AUTHORITIES: Option<(&str, &str)> =
    if cfg!(feature = "tls-vendored") { Some(("ssl.ca.location", "probe")) } else { None };

/// What to do about a connection that failed because of TLS, by what librdkafka says about it: its error codes do not tell.
pub(crate) fn hint(said: &str) -> Option<&'static str> {
    let was_closed_in = |state: &str| said.contains("Disconnected") && said.contains(state);
    if was_closed_in("in state APIVERSION_QUERY") && !said.contains("ssl://") {
        return Some(
            "the broker closed the connection before it said anything; if it expects TLS, write kafka+ssl://, or set security.protocol",
        );
    }
    if was_closed_in("in state SSL_HANDSHAKE") {
        return Some("the broker seems to have no TLS there; write kafka://, or check the port");
    }
    HINTS.into_iter().find(|(known, _)| said.contains(known)).map(|(_, hint)| hint)
}

/// Refuses what a client without OpenSSL cannot do, and files that cannot be read.
///
/// # Errors
/// A sentence without the value of a property.
pub(crate) fn check(properties: &BTreeMap<String, String>) -> Result<(), String> {
    refuse_without_tls(properties, HAS_TLS)?;
    for name in FILES {
        match properties.get(name).map(Path::new) {
            // librdkafka looks for the place itself.
            Some(path) if path != Path::new("probe") => {
                File::open(path).map_err(|error| format!("the file that {name} names cannot be read: {error}"))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Which file librdkafka could not use, by what it says about it.
pub(crate) fn unusable_file(said: &str) -> Option<&'static str> {
    FILES.into_iter().find(|name| said.contains(name))
}

fn refuse_without_tls(properties: &BTreeMap<String, String>, has_tls: bool) -> Result<(), String> {
    // The mechanisms that hash or sign need OpenSSL too.
    let needing: [(&str, &[&str]); 3] = [
        ("security.protocol", &["ssl", "sasl_ssl"]),
        ("sasl.mechanisms", &["scram-sha-256", "scram-sha-512", "oauthbearer"]),
        ("sasl.mechanism", &["scram-sha-256", "scram-sha-512", "oauthbearer"]),
    ];
    for (name, values) in needing {
        let value = properties.get(name).map(|value| value.to_ascii_lowercase());
        if let Some(value) = values.iter().find(|known| !has_tls && value.as_deref() == Some(**known)) {
            return Err(format!(
                "{name}={value} needs the feature `tls` of saga-kafka, with OpenSSL's headers (`libssl-dev`), or its feature \
                 `tls-vendored`, which builds OpenSSL; `kafka+ssl://` sets security.protocol"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn properties(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_needs_the_feature_names_it() {
        for (name, value) in [
            ("security.protocol", "ssl"),
            ("security.protocol", "SASL_SSL"),
            ("sasl.mechanisms", "SCRAM-SHA-512"),
            ("sasl.mechanism", "OAUTHBEARER"),
        ] {
            let all = properties(&[(name, value), ("sasl.password", "hunter2")]);
            let problem = refuse_without_tls(&all, false).unwrap_err();
            assert!(problem.contains(name) && problem.contains("`tls`") && !problem.contains("hunter2"), "{problem}");
            assert_eq!(refuse_without_tls(&all, true), Ok(()));
        }
        let plain = properties(&[("security.protocol", "sasl_plaintext"), ("sasl.mechanisms", "PLAIN")]);
        assert_eq!(refuse_without_tls(&plain, false), Ok(()));
    }

    /// librdkafka adds its own guess only where the handshake had to wait for the broker.
    #[test]
    fn a_connection_that_ends_in_the_handshake_has_one_hint() {
        for said in [
            "ssl://127.0.0.1:1/bootstrap: Disconnected: SSL connection closed by peer (after 0ms in state SSL_HANDSHAKE)",
            "ssl://127.0.0.1:1/bootstrap: SSL handshake failed: Disconnected: connection closed by peer: connecting to a PLAINTEXT broker listener? \
             (after 2ms in state SSL_HANDSHAKE)",
        ] {
            assert!(hint(said).is_some_and(|hint| hint.contains("write kafka://")), "{said}");
        }
        let refused = "SSL handshake failed: error:0A000086:SSL routines::certificate verify failed (after 3ms in state SSL_HANDSHAKE)";
        assert!(hint(refused).is_some_and(|hint| hint.contains("ssl.ca.location")), "{refused}");
        assert_eq!(hint("ssl://127.0.0.1:1/1: Disconnected (after 60000ms in state UP)"), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_by_its_property() {
        let problem = check(&properties(&[("ssl.key.location", "/nowhere/hunter2.key")])).unwrap_err();
        assert!(problem.contains("ssl.key.location names cannot be read: No such file"), "{problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
        assert_eq!(check(&properties(&[("ssl.ca.location", "probe")])), Ok(()));
    }
}
