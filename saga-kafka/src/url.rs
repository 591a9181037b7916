//! The options that a URL says.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::options::{KafkaOptions, Topics};

const FORM: &str = "a URL such as kafka://user:password@one:9092,two:9092?prefix=shop.&partitions=24";

/// The parameters that name files, and librdkafka's properties.
const FILES: [(&str, &str); 3] = [
    ("ca_file", "ssl.ca.location"),
    ("certificate_file", "ssl.certificate.location"),
    ("key_file", "ssl.key.location"),
];

impl KafkaOptions {
    /// The options of a URL: `kafka://` or, encrypted, `kafka+ssl://`, then the brokers that are asked first. A user and a password
    /// before them are sent by SASL's mechanism PLAIN; both are percent-encoded. These parameters are known: `prefix`, `partitions`,
    /// `replication_factor`, `session_timeout` in seconds, and `topics`, which is `create`, `on-demand` or `check`.
    ///
    /// `kafka+ssl://` needs the feature `tls`, and takes the paths of three files in PEM as parameters: `ca_file`, the
    /// authorities that may have signed the brokers' certificates, without which those of the system are trusted; and `certificate_file` and
    /// `key_file`, for brokers that ask for a certificate of the client. The certificate of a broker must name its host.
    ///
    /// ```
    /// use saga_kafka::KafkaOptions;
    ///
    /// let options = KafkaOptions::from_url("kafka://shop:s3cret@one:9092,two:9092?prefix=shop.&partitions=24")?;
    /// assert!(!format!("{options:?}").contains("s3cret"));
    ///
    /// let refused = KafkaOptions::from_url("kafka://one:9092?partitons=24").unwrap_err();
    /// assert!(refused.to_string().contains("there is no parameter partitons"));
    /// # Ok::<(), saga_core::transport::TransportError>(())
    /// ```
    ///
    /// # Errors
    /// Which part of the URL is wrong, without the user and the password.
    pub fn from_url(url: &str) -> Result<Self, TransportError> {
        parse(url).map_err(|problem| TransportError::new(TransportErrorKind::Refused, "connect", problem))
    }
}

fn parse(url: &str) -> Result<KafkaOptions, String> {
    // Only a plain name is repeated: what a mistyped URL has there may be a password.
    let is_plain = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+._-".contains(&byte));
    let parts = url.split_once("://").filter(|(scheme, _)| is_plain(scheme));
    let (scheme, rest) = parts.ok_or_else(|| format!("this is no URL; give {FORM}"))?;
    let is_encrypted = match scheme {
        "kafka" => false,
        "kafka+ssl" => true,
        other => return Err(format!("the scheme is kafka or kafka+ssl, not {other}")),
    };
    let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    // A password may hold an `@` that its owner forgot to encode; a broker's name may not.
    let (user, brokers) = place.rsplit_once('@').map_or((None, place), |(user, brokers)| (Some(user), brokers));
    let brokers = brokers.trim_end_matches('/');
    if brokers.split(',').any(|broker| broker.is_empty() || broker.starts_with(':') || broker.contains('/')) {
        return Err(format!("the brokers are `host:port,host:port`; give {FORM}"));
    }
    let mut options = secured(KafkaOptions::new(brokers), is_encrypted, user)?;
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !is_plain(name) {
            return Err(format!(
                "a parameter has no name, or a `?` of the password is not percent-encoded; give {FORM}"
            ));
        }
        let value = decoded(name, value)?;
        options = match FILES.iter().find(|(file, _)| *file == name) {
            Some((_, property)) if is_encrypted => options.property(*property, value),
            Some(_) => return Err(format!("{name} is a parameter of kafka+ssl:// only")),
            None => with_parameter(options, name, &value)?,
        };
    }
    Ok(options)
}

fn secured(options: KafkaOptions, is_encrypted: bool, user: Option<&str>) -> Result<KafkaOptions, String> {
    let Some(user) = user else {
        return Ok(if is_encrypted { options.property("security.protocol", "ssl") } else { options });
    };
    let (user, password) = user.split_once(':').ok_or("a user has a password: `user:password@`")?;
    let protocol = if is_encrypted { "sasl_ssl" } else { "sasl_plaintext" };
    let options = options.property("security.protocol", protocol).property("sasl.mechanisms", "PLAIN");
    let options = options.property("sasl.username", decoded("the user", user)?);
    Ok(options.property("sasl.password", decoded("the password", password)?))
}

fn with_parameter(options: KafkaOptions, name: &str, value: &str) -> Result<KafkaOptions, String> {
    Ok(match name {
        "prefix" => options.prefix(value),
        "partitions" => options.partitions(number(name, value)?),
        "replication_factor" => options.replication_factor(number(name, value)?),
        "session_timeout" => options.session_timeout(Duration::from_secs(number(name, value)?)),
        "topics" => options.topics(match value {
            "create" => Topics::Create,
            "on-demand" => Topics::OnDemand,
            "check" => Topics::Check,
            other => return Err(format!("topics is create, on-demand or check, not {other}")),
        }),
        other => {
            let known = "prefix, partitions, replication_factor, session_timeout, topics, ca_file, certificate_file and key_file";
            return Err(format!("there is no parameter {other}; there are {known}"));
        }
    })
}

fn number<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("{name} is a number, not `{value}`: {error}"))
}

/// The value is not part of the error: it may be secret.
fn decoded(name: &str, value: &str) -> Result<String, String> {
    let text = percent_decode_str(value).decode_utf8();
    text.map(String::from).map_err(|_| format!("{name} is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::options::Topics;

    fn property(url: &str, name: &str) -> Option<String> {
        parse(url).unwrap().properties.get(name).cloned()
    }

    #[test]
    fn a_url_says_who_is_asked_and_how() {
        let options = parse(
            "kafka://one:9092,two:9093/?prefix=shop.&partitions=24&replication_factor=3&session_timeout=6&topics=on-demand",
        );
        let options = options.unwrap();
        assert_eq!(options.session_timeout, std::time::Duration::from_secs(6));
        assert_eq!(options.brokers, "one:9092,two:9093");
        assert_eq!((options.partitions, options.replication_factor, options.topics), (24, 3, Topics::OnDemand));
        assert_eq!(options.names().unwrap().topic("orders").unwrap(), "shop.orders");
        assert!(options.properties.is_empty(), "a cluster that asks for no user gets none");
    }

    #[test]
    fn a_user_and_encryption_are_properties() {
        let url = "kafka://shop:p%40ss%3Aw@one";
        for (name, value) in [
            ("security.protocol", "sasl_plaintext"),
            ("sasl.mechanisms", "PLAIN"),
            ("sasl.username", "shop"),
            ("sasl.password", "p@ss:w"),
        ] {
            assert_eq!(property(url, name).as_deref(), Some(value), "{name}");
        }
        assert_eq!(property("kafka+ssl://one", "security.protocol").as_deref(), Some("ssl"));
        assert_eq!(property("kafka+ssl://a:b@one", "security.protocol").as_deref(), Some("sasl_ssl"));
        let files = "kafka+ssl://one?ca_file=/etc/our%20ca.pem&certificate_file=me.pem&key_file=me.key";
        assert_eq!(property(files, "ssl.ca.location").as_deref(), Some("/etc/our ca.pem"));
        assert_eq!(property(files, "ssl.certificate.location").as_deref(), Some("me.pem"));
        assert_eq!(property(files, "ssl.key.location").as_deref(), Some("me.key"));
    }

    #[test]
    fn what_is_wrong_is_named_and_no_password_is_shown() {
        for (url, told) in [
            ("one:9092", "this is no URL"),
            ("amqp://u:s3cret@h", "the scheme is kafka or kafka+ssl, not amqp"),
            ("kafka:/u:s3cret@one?prefix=://", "this is no URL"),
            ("kafka://u:pass?s3cret@one", "a `?` of the password is not percent-encoded"),
            ("kafka://u:s3cret@", "the brokers are"),
            ("kafka://u:s3cret@one,,two", "the brokers are"),
            ("kafka://u:s3cret@:9092", "the brokers are"),
            ("kafka://u:s3cret@one/topic", "the brokers are"),
            ("kafka://s3cret@one", "a user has a password"),
            ("kafka://u:s3cret%FF@one", "the password is not percent-encoded UTF-8"),
            ("kafka://u:s3cret@one?partitions=many", "partitions is a number, not `many`"),
            ("kafka://u:s3cret@one?topics=never", "topics is create, on-demand or check, not never"),
            ("kafka://u:s3cret@one?ca_file=ca.pem", "ca_file is a parameter of kafka+ssl:// only"),
            ("kafka://u:s3cret@one?acks=0", "there is no parameter acks"),
        ] {
            let problem = parse(url).unwrap_err();
            assert!(problem.contains(told), "{url}: {problem}");
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }
}
