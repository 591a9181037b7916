//! The clients of SQS and SNS.

use aws_sdk_sqs::config::retry::RetryConfig;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::{BehaviorVersion, Region};
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use saga_core::transport::{TransportError, TransportErrorKind};

use crate::options::SqsOptions;

/// How often a request is sent, if it fails in a way that may pass.
const ATTEMPTS_MAX: u32 = 3;

/// What requests are sent with.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) sqs: aws_sdk_sqs::Client,
    pub(crate) sns: aws_sdk_sns::Client,
}

impl Clients {
    /// # Errors
    /// Says what the options lack.
    pub(crate) fn new(options: &SqsOptions) -> Result<Self, TransportError> {
        let missing = |what: &str| {
            let detail = format!("there is no {what}; set it in the environment, or with `SqsOptions`");
            TransportError::new(TransportErrorKind::Refused, "connect", detail)
        };
        let region = Region::new(options.region.clone().ok_or_else(|| missing("region"))?);
        let credentials = options.credentials.clone().ok_or_else(|| missing("access key"))?;
        let http =
            aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
        let retries = RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX);
        let timeouts = timeouts(options);
        let mut sqs = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(region.clone())
            .credentials_provider(credentials.clone())
            .http_client(http.clone())
            .retry_config(retries.clone())
            .timeout_config(timeouts.clone());
        sqs.set_endpoint_url(options.sqs_endpoint.clone());
        let mut sns = aws_sdk_sns::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(region)
            .credentials_provider(credentials)
            .http_client(http)
            .retry_config(retries)
            .timeout_config(timeouts);
        sns.set_endpoint_url(options.sns_endpoint.clone());
        Ok(Self { sqs: aws_sdk_sqs::Client::from_conf(sqs.build()), sns: aws_sdk_sns::Client::from_conf(sns.build()) })
    }
}

fn timeouts(options: &SqsOptions) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(options.request_timeout)
        .operation_attempt_timeout(options.request_timeout)
        .operation_timeout(options.publish_timeout)
        .build()
}

/// What differs in a request that waits for messages: it may take so much longer, and is not sent again by the client.
pub(crate) fn while_waiting(options: &SqsOptions) -> aws_sdk_sqs::config::Builder {
    let longest = options.wait_time + options.request_timeout;
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(options.request_timeout)
        .operation_attempt_timeout(longest)
        .operation_timeout(longest)
        .build();
    aws_sdk_sqs::Config::builder().timeout_config(timeouts).retry_config(RetryConfig::disabled())
}
