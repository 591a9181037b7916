use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sqs::types::{MessageAttributeValue, QueueAttributeName as Attribute};
use saga_servers::MotoServer;

/// Another client, which knows nothing of this project.
pub(crate) struct Raw(Client);

impl Raw {
    pub(crate) fn at(server: &MotoServer) -> Self {
        let http = aws_smithy_http_client::Builder::new().build_http();
        let config = aws_sdk_sqs::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new("us-east-1"))
            .credentials_provider(Credentials::new("a", "b", None, None, "test"))
            .endpoint_url(server.url())
            .http_client(http)
            .build();
        Self(Client::from_conf(config))
    }

    /// Sends a body with one attribute.
    pub(crate) async fn send(&self, queue: &str, body: &str) {
        let trace = MessageAttributeValue::builder().data_type("String").string_value("7").build().unwrap();
        let asked = self.0.send_message().queue_url(self.url(queue).await.expect("the queue is there"));
        let asked = asked.message_body(body).message_group_id("g").message_deduplication_id("d");
        asked.message_attributes("trace", trace).send().await.unwrap();
    }

    /// Receives a message for a second, and says nothing more of it.
    pub(crate) async fn receive_and_die(&self, queue: &str) {
        let asked = self.0.receive_message().queue_url(self.url(queue).await.expect("the queue is there"));
        let came = asked.visibility_timeout(1).wait_time_seconds(5).send().await.unwrap();
        assert_eq!(came.messages().len(), 1);
    }

    pub(crate) async fn delete(&self, queue: &str) {
        let url = self.url(queue).await.expect("the queue is there");
        self.0.delete_queue().queue_url(url).send().await.unwrap();
    }

    pub(crate) async fn exists(&self, queue: &str) -> bool {
        self.url(queue).await.is_some()
    }

    /// How many messages a queue has, also those that receivers have.
    pub(crate) async fn depth(&self, queue: &str) -> u64 {
        let counts = [Attribute::ApproximateNumberOfMessages, Attribute::ApproximateNumberOfMessagesNotVisible];
        let asked = self.0.get_queue_attributes().queue_url(self.url(queue).await.expect("the queue is there"));
        let found = asked.set_attribute_names(Some(counts.to_vec())).send().await.unwrap();
        let found = found.attributes().expect("there are attributes");
        counts.iter().map(|count| found[count].parse::<u64>().unwrap()).sum()
    }

    async fn url(&self, queue: &str) -> Option<String> {
        self.0.get_queue_url().queue_name(queue).send().await.ok()?.queue_url
    }
}
