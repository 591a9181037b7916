use std::fmt;
use std::time::Duration;

use aws_sdk_sqs::config::{Credentials, ProvideCredentials, SharedCredentialsProvider};
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::environment::Variables;
use crate::names::Names;

/// The longest time that SQS keeps a message.
const RETENTION_MAX: Duration = Duration::from_hours(14 * 24);
/// The longest time that a request may wait for messages: a limit of SQS.
const WAIT_TIME_MAX: Duration = Duration::from_secs(20);
/// How often SQS hands a message out at most before it is a dead letter.
const RECEIVES_MAX: u32 = 1000;

/// How the transport treats queues, topics and subscriptions that do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Declare {
    /// The transport makes those that are missing: receivers their queues, those of their dead letters and their subscriptions to
    /// topics; senders and receivers the topics of events. What is there keeps its attributes.
    #[default]
    Missing,
    /// The transport makes none, and names a missing queue or topic. It cannot check subscriptions.
    Nothing,
}

/// The options of a transport, and its limits.
///
/// ```
/// use std::time::Duration;
///
/// use saga_sqs::{Declare, SqsOptions};
///
/// let options = SqsOptions::new("eu-central-1")
///     .access_key("AKIDEXAMPLE", "secret")
///     .prefix("shop")
///     .declare(Declare::Missing)
///     .rejections_max(10)
///     .publish_timeout(Duration::from_secs(5));
/// assert!(!format!("{options:?}").contains("secret"));
/// ```
#[derive(Clone)]
pub struct SqsOptions {
    pub(crate) region: Option<String>,
    pub(crate) sqs_endpoint: Option<String>,
    pub(crate) sns_endpoint: Option<String>,
    pub(crate) credentials: Option<SharedCredentialsProvider>,
    pub(crate) names: Result<Names, String>,
    pub(crate) declare: Declare,
    pub(crate) rejections_max: u32,
    pub(crate) payload_bytes_max: usize,
    pub(crate) request_timeout: Duration,
    pub(crate) publish_timeout: Duration,
    pub(crate) wait_time: Duration,
    pub(crate) visibility: Duration,
    pub(crate) retention: Duration,
}

impl SqsOptions {
    /// The options of a region, such as `eu-central-1`, without credentials.
    pub fn new(region: impl Into<String>) -> Self {
        Self::of(Variables { region: Some(region.into()), ..Variables::default() })
    }

    /// The options that the environment has: the region in `AWS_REGION` or `AWS_DEFAULT_REGION`, the credentials in
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, and endpoints in `AWS_ENDPOINT_URL_SQS`,
    /// `AWS_ENDPOINT_URL_SNS` or, for both, `AWS_ENDPOINT_URL`. Connecting fails if the region or the credentials are missing.
    ///
    /// It reads no files and asks no server. Where the credentials come from elsewhere, such as the role of a machine, get them with
    /// the crate `aws-config`, and give them to [`credentials`](Self::credentials).
    pub fn from_env() -> Self {
        Self::of(Variables::read(|name| std::env::var(name).ok()))
    }

    fn of(variables: Variables) -> Self {
        Self {
            region: variables.region,
            sqs_endpoint: variables.sqs_endpoint,
            sns_endpoint: variables.sns_endpoint,
            credentials: variables.credentials.map(SharedCredentialsProvider::new),
            names: Names::new("saga"),
            declare: Declare::Missing,
            rejections_max: 20,
            payload_bytes_max: 700 << 10,
            request_timeout: Duration::from_secs(5),
            publish_timeout: Duration::from_secs(10),
            wait_time: WAIT_TIME_MAX,
            visibility: Duration::from_secs(30),
            retention: RETENTION_MAX,
        }
    }

    /// Sets the address of SQS and SNS, such as that of a server for tests.
    #[must_use]
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        let url = url.into();
        self.sqs_endpoint = Some(url.clone());
        self.sns_endpoint = Some(url);
        self
    }

    /// Sets an access key and its secret.
    #[must_use]
    pub fn access_key(self, id: impl Into<String>, secret: impl Into<String>) -> Self {
        self.credentials(Credentials::new(id, secret, None, None, "SqsOptions"))
    }

    /// Sets where credentials come from, such as the provider that `aws-config` finds. It is asked again when they expire.
    #[must_use]
    pub fn credentials(mut self, provider: impl ProvideCredentials + 'static) -> Self {
        self.credentials = Some(SharedCredentialsProvider::new(provider));
        self
    }

    /// Sets the prefix of the names of all queues and topics, before a `-`: 1 to 24 bytes of `[A-Za-z0-9-]`. The default is `saga`.
    #[must_use]
    pub fn prefix(mut self, prefix: impl AsRef<str>) -> Self {
        self.names = Names::new(prefix.as_ref());
        self
    }

    /// Sets how the transport treats queues, topics and subscriptions that do not exist. By default it makes them.
    #[must_use]
    pub fn declare(mut self, declare: Declare) -> Self {
        self.declare = declare;
        self
    }

    /// How often a rejected message is delivered again before it becomes a dead letter, at most 999. The default is 20. A queue that
    /// exists keeps its own number. Deliveries to a process that died count too.
    #[must_use]
    pub fn rejections_max(mut self, rejections: u32) -> Self {
        self.rejections_max = rejections.min(RECEIVES_MAX - 1);
        self
    }

    /// The largest payload that is sent or received; a larger received one becomes a dead letter. The default is 700 KiB: as
    /// base64, and with its head, it fits into the mebibyte that SQS takes.
    #[must_use]
    pub fn payload_bytes_max(mut self, bytes: usize) -> Self {
        self.payload_bytes_max = bytes;
        self
    }

    /// How long one request may take, without the time that it waits for messages. The default is 5 seconds.
    #[must_use]
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = timeout;
        self
    }

    /// How long a request that sends may take with its repetitions before the outcome is unknown. The default is 10 seconds. It must
    /// be shorter than the runtime's `Settings::publish_timeout`.
    #[must_use]
    pub fn publish_timeout(mut self, timeout: Duration) -> Self {
        self.publish_timeout = timeout;
        self
    }

    /// How long a request waits for messages, in whole seconds, at most 20. The default is 20 seconds.
    #[must_use]
    pub fn wait_time(mut self, time: Duration) -> Self {
        self.wait_time = time.min(WAIT_TIME_MAX);
        self
    }

    /// How long SQS withholds a message that was handed out, in whole seconds, at least 3. The default is 30 seconds. While a receiver
    /// has the message, this time is extended; when its process dies, the message is handed out again after this time.
    #[must_use]
    pub fn visibility(mut self, time: Duration) -> Self {
        self.visibility = time.max(Duration::from_secs(3));
        self
    }

    /// How long queues keep messages, at most 14 days, which is the default. A queue that exists keeps its own time, so this must be
    /// the longest of them. A runtime that forgets the ids of messages earlier does not start.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention.min(RETENTION_MAX);
        self
    }

    /// The names that follow from the prefix.
    pub(crate) fn names(&self) -> Result<Names, TransportError> {
        self.names.clone().map_err(|problem| TransportError::new(TransportErrorKind::Refused, "connect", problem))
    }

    /// How often a message is handed out before it is a dead letter.
    pub(crate) fn receives_max(&self) -> u32 {
        self.rejections_max + 1
    }
}

impl fmt::Debug for SqsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the credentials, and without the endpoints: an address may have a password in it.
        f.debug_struct("SqsOptions")
            .field("region", &self.region)
            .field("names", &self.names)
            .field("declare", &self.declare)
            .field("rejections_max", &self.rejections_max)
            .field("payload_bytes_max", &self.payload_bytes_max)
            .field("request_timeout", &self.request_timeout)
            .field("publish_timeout", &self.publish_timeout)
            .field("wait_time", &self.wait_time)
            .field("visibility", &self.visibility)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
