use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use lapin::tcp::{AMQPUriTcpExt, OwnedTLSConfig};
use lapin::types::ShortString;
use lapin::uri::{AMQPUri, SASLMechanism};
use lapin::{Connection, ConnectionProperties};
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::error::{failed, too_late};
use crate::options::AmqpOptions;
use crate::{hosts, quiet};
use saga_core::__private::log;

/// What the broker is told where nothing was wrong.
pub(crate) const REPLY_SUCCESS: u16 = 200;

/// How long a connection may take to close: one whose thread has died does so never.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// The address as it may be printed: without the password.
pub(crate) fn address(uri: &AMQPUri) -> String {
    let authority = &uri.authority;
    let host = &authority.host;
    format!(
        "the broker at {host}:{} as {:?}, virtual host {:?}",
        authority.port, authority.userinfo.username, uri.vhost
    )
}

/// Reads the URL. The error repeats nothing of it but its scheme.
pub(crate) fn parse(options: &AmqpOptions) -> Result<Vec<AMQPUri>, TransportError> {
    let refused = |problem: String| {
        let detail = format!(
            "{problem}; write amqp://USER:PASSWORD@HOST:PORT/VIRTUAL-HOST, where %2f is the host \"/\"; of a cluster name \
             several, as in HOST:PORT,HOST:PORT"
        );
        TransportError::new(TransportErrorKind::Refused, "connect", detail)
    };
    match options.url.split_once(':') {
        Some(("amqp" | "amqps", _)) => {}
        Some((scheme, _)) => return Err(refused(format!("{scheme:?} is no scheme of the RabbitMQ transport"))),
        None => return Err(refused("the broker's URL has no scheme".to_owned())),
    }
    let is_tls = options.url.starts_with("amqps:");
    if is_tls && !cfg!(any(feature = "tls-ring", feature = "tls-aws-lc-rs", feature = "tls-native")) {
        let detail = "amqps:// needs one of saga-amqp's features `tls-ring`, `tls-aws-lc-rs` and `tls-native`";
        return Err(TransportError::new(TransportErrorKind::Refused, "connect", detail));
    }
    let mut uris = hosts::read(&options.url).map_err(refused)?;
    let seconds = u16::try_from(options.heartbeat.as_secs()).unwrap_or(u16::MAX);
    for uri in &mut uris {
        uri.query.heartbeat.get_or_insert(seconds);
    }
    Ok(uris)
}

/// The user of the connection, where the URL says it: with a client's certificate the broker decides who that is.
pub(crate) fn user(options: &AmqpOptions) -> Result<Option<ShortString>, TransportError> {
    // All hosts of a URL have its user.
    let uris = parse(options)?;
    let is_named = |uri: &&AMQPUri| options.user_id && uri.query.auth_mechanism != Some(SASLMechanism::External);
    let Some(uri) = uris.first().filter(is_named) else { return Ok(None) };
    let name = uri.authority.userinfo.username.as_str();
    ShortString::try_new(name).map(Some).map_err(|_| {
        let detail = format!(
            "the URL of the broker has a user of {} bytes, and a message can name one of 255: use another user, or \
             `without_user_id`",
            name.len()
        );
        TransportError::new(TransportErrorKind::Refused, "connect", detail)
    })
}

/// Opens a connection to the first host that answers, and says which one that is; `role` is shown in the broker's list of
/// connections.
///
/// # Cancel safety
/// Dropping it leaves no connection behind.
pub(crate) async fn open(options: &AmqpOptions, role: &str) -> Result<(Connection, usize), TransportError> {
    let uris = parse(options)?;
    // A frozen node takes a connection and says nothing: it is passed over in time for the others.
    let limit = if uris.len() == 1 { options.connect_timeout } else { options.connect_timeout / 2 };
    let mut problems = Vec::new();
    let mut kind = TransportErrorKind::Unavailable;
    for host in options.turn.order(uris.len()) {
        match open_one(uris[host].clone(), role, limit).await {
            Ok(connection) => {
                options.turn.stay(host);
                return Ok((connection, host));
            }
            Err(error) if uris.len() == 1 => return Err(error),
            Err(error) => {
                if error.kind() == TransportErrorKind::Refused {
                    kind = TransportErrorKind::Refused;
                }
                let text = error.to_string();
                problems.push(text.strip_prefix("connect: ").unwrap_or(&text).to_owned());
            }
        }
    }
    let detail = format!("none of {} brokers can be used: {}", uris.len(), problems.join("; "));
    Err(TransportError::new(kind, "connect", detail))
}

async fn open_one(uri: AMQPUri, role: &str, limit: Duration) -> Result<Connection, TransportError> {
    let doing = format!("connect to {}", address(&uri));
    let properties = ConnectionProperties::default().with_connection_name(format!("saga {role}").into());
    let runtime = lapin::runtime::default_runtime().map_err(|error| failed("connect", &doing, &error))?;
    let listener = quiet::listener();
    // It is called on the thread on which the library will read what the broker says.
    let connect = async move |uri: AMQPUri, runtime| {
        quiet::listen_here(&listener);
        let tls = OwnedTLSConfig::default();
        AMQPUriTcpExt::connect_with_config_async(&uri, tls.as_ref(), &runtime).await.map_err(lapin::Error::from)
    };
    match tokio::time::timeout(limit, Connection::connector(uri, runtime, connect, properties)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(failed("connect", &doing, &error)),
        Err(_) => Err(too_late("connect", &doing, limit)),
    }
}

/// A connection that is closed when it is dropped, even if calls are under way. The library closes a connection only when
/// nothing refers to it any more. A call that was dropped half way may refer to it for ever, and its consumer would go on
/// taking messages.
pub(crate) struct Closing(Arc<Connection>);

impl Closing {
    pub(crate) fn of(connection: Connection) -> Self {
        Self(Arc::new(connection))
    }
}

impl Deref for Closing {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        let connection = Arc::clone(&self.0);
        // Where the runtime has ended, the connection has too.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                match tokio::time::timeout(CLOSING_MAX, connection.close(REPLY_SUCCESS, "OK".into())).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => log::debug!(%error, "connection already closed"),
                    Err(_) => log::debug!("connection not closed in time"),
                }
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_whose_name_fits_in_no_message_is_refused() {
        let options = AmqpOptions::new(format!("amqp://{}:p@localhost", "u".repeat(256)));
        let error = user(&options).unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Refused);
        assert!(error.to_string().contains("a user of 256 bytes"), "{error}");
        assert_eq!(user(&options.without_user_id()).unwrap(), None);
    }
}
