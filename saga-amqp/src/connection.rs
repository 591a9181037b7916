use std::ops::Deref;
use std::sync::Arc;

use lapin::uri::AMQPUri;
use lapin::{Connection, ConnectionProperties};
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::error::{failed, too_late};
use crate::options::AmqpOptions;

/// What the broker is told where nothing was wrong.
const REPLY_SUCCESS: u16 = 200;

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
pub(crate) fn parse(options: &AmqpOptions) -> Result<AMQPUri, TransportError> {
    let refused = |problem: String| {
        let detail =
            format!("{problem}; write amqp://USER:PASSWORD@HOST:PORT/VIRTUAL-HOST, where %2f is the host \"/\"");
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
    let mut uri: AMQPUri = options.url.parse().map_err(|_| refused("the broker's URL cannot be read".to_owned()))?;
    let seconds = u16::try_from(options.heartbeat.as_secs()).unwrap_or(u16::MAX);
    uri.query.heartbeat.get_or_insert(seconds);
    Ok(uri)
}

/// Opens a connection; `role` is shown in the broker's list of connections.
///
/// # Cancel safety
/// Dropping it leaves no connection behind.
pub(crate) async fn open(options: &AmqpOptions, role: &str) -> Result<Connection, TransportError> {
    let uri = parse(options)?;
    let doing = format!("connect to {}", address(&uri));
    let properties = ConnectionProperties::default().with_connection_name(format!("saga {role}").into());
    match tokio::time::timeout(options.connect_timeout, Connection::connect_uri(uri, properties)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(error)) => Err(failed("connect", &doing, &error)),
        Err(_) => Err(too_late("connect", &doing, options.connect_timeout)),
    }
}

/// A connection that is closed when it is dropped, whatever of it is still under way. The library closes one by itself only
/// when nothing holds on to it any more, and a call that was dropped half way may do so for ever: its consumer would go on
/// taking messages that nobody sees.
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
                if let Err(error) = connection.close(REPLY_SUCCESS, "OK".into()).await {
                    tracing::debug!(%error, "a connection had ended before it was closed");
                }
            });
        }
    }
}
