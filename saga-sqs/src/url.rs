//! The options that a URL says.

use std::time::Duration;

use saga_core::transport::{TransportError, TransportErrorKind};

use crate::options::SqsOptions;

const FORM: &str = "sqs:PREFIX, with which the names of the queues begin, or sqs:PREFIX?visibility=SECONDS";

impl SqsOptions {
    /// The options of `sqs:PREFIX` or `sqs:PREFIX?visibility=SECONDS`, for programs that take their transport as a URL. The region,
    /// the credentials and the endpoints come from the environment, as those of [`from_env`](Self::from_env).
    ///
    /// ```
    /// use saga_sqs::SqsOptions;
    ///
    /// let options = SqsOptions::from_url("sqs:shop?visibility=60")?;
    ///
    /// let refused = SqsOptions::from_url("sqs:shop?visibilty=60").unwrap_err();
    /// assert!(refused.to_string().contains("there is no parameter visibilty"));
    /// # Ok::<(), saga_core::transport::TransportError>(())
    /// ```
    ///
    /// # Errors
    /// Which part of the URL is wrong.
    pub fn from_url(url: &str) -> Result<Self, TransportError> {
        parse(url).map_err(|problem| TransportError::new(TransportErrorKind::Refused, "connect", problem))
    }
}

fn parse(url: &str) -> Result<SqsOptions, String> {
    let named = url.strip_prefix("sqs:").ok_or_else(|| format!("the URL does not begin with sqs:; write {FORM}"))?;
    let named = named.trim_start_matches("//");
    let (prefix, parameters) = named.split_once('?').unwrap_or((named, ""));
    let mut options = SqsOptions::from_env().prefix(prefix);
    options.names.clone().map_err(|problem| format!("{problem}; write {FORM}"))?;
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        options = match name {
            "visibility" => options.visibility(seconds(value)?),
            _ => return Err(format!("there is no parameter {name}; write {FORM}")),
        };
    }
    Ok(options)
}

fn seconds(value: &str) -> Result<Duration, String> {
    value.parse().map(Duration::from_secs).map_err(|_| format!("visibility={value} is no number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_the_prefix_and_the_visibility() {
        for url in ["sqs:shop?visibility=3", "sqs://shop?visibility=3"] {
            let options = parse(url).unwrap();
            assert_eq!((options.names.unwrap().prefix(), options.visibility), ("shop-", Duration::from_secs(3)));
        }
        assert_eq!(parse("sqs:shop").unwrap().visibility, Duration::from_secs(30));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        let refused = |url: &str| SqsOptions::from_url(url).unwrap_err().to_string();
        assert!(refused("sqs:").contains("the prefix has 0 bytes"), "{}", refused("sqs:"));
        let of_another = refused("amqp://me:secret@shop");
        assert!(of_another.contains("does not begin with sqs:") && !of_another.contains("secret"), "{of_another}");
        assert!(refused("sqs:sh op").contains("contains ' '"));
        assert!(refused("sqs:shop?visibility=soon").contains("visibility=soon is no number of seconds"));
        assert!(refused("sqs:shop?visible=3").contains("there is no parameter visible"));
    }
}
