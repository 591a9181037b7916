//! A shared transport is a transport, so that a program can choose one when it starts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Incoming, Message, Subscription, Transport, TransportError};

#[async_trait]
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        (**self).publish(messages).await
    }

    fn redelivers_within(&self) -> Option<Duration> {
        (**self).redelivers_within()
    }

    fn payload_bytes_max(&self) -> Option<usize> {
        (**self).payload_bytes_max()
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        (**self).reachable().await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        (**self).subscribe(subscription).await
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        (**self).dead_letters(subscription, prefetch).await
    }
}
