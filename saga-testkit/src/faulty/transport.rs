use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use saga_core::key::Tenant;
use saga_core::memory::MemoryTransport;
use saga_core::store::MessageId;
use saga_core::transport::{
    Delivery, Incoming, Message, Settlement, Subscription, Transport, TransportError, TransportErrorKind,
};

use super::TransportFlaw;

/// A memory transport with a flaw, or with none.
#[derive(Debug, Clone)]
pub struct FaultyTransport {
    pub(super) inner: MemoryTransport,
    flaw: Option<TransportFlaw>,
    seen: Arc<Mutex<BTreeSet<MessageId>>>,
    subscriptions: Arc<Mutex<u32>>,
}

impl FaultyTransport {
    pub(super) fn new(flaw: Option<TransportFlaw>, rejections_max: u32) -> Self {
        let rejections_max = if flaw == Some(TransportFlaw::NeverGivesUp) { u32::MAX } else { rejections_max };
        let inner = MemoryTransport::new().with_rejections_max(rejections_max);
        Self { inner, flaw, seen: Arc::default(), subscriptions: Arc::default() }
    }

    fn has(&self, flaw: TransportFlaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Whether the flaw lets go of this message.
    fn loses(&self, index: usize, message: &Message) -> bool {
        let is_new = self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(message.id);
        match self.flaw {
            Some(TransportFlaw::LosesConfirmed) => index % 2 == 1,
            Some(TransportFlaw::DropsDuplicates) => !is_new,
            _ => false,
        }
    }

    fn twist(&self, message: &mut Message) {
        if self.has(TransportFlaw::ManglesPayloads) {
            message.payload = String::from_utf8_lossy(&message.payload).into_owned().into_bytes();
        }
        if self.has(TransportFlaw::FoldsTenants) {
            let folded = message.tenant.as_str().to_ascii_lowercase();
            message.tenant = Tenant::from_stored(&folded).unwrap_or_default();
        }
    }
}

#[async_trait]
impl Transport for FaultyTransport {
    fn name(&self) -> &'static str {
        "faulty"
    }

    async fn publish(&self, messages: Vec<Message>) -> Vec<Result<(), TransportError>> {
        let count = messages.len();
        let mut kept: Vec<Message> = Vec::new();
        for (index, mut message) in messages.into_iter().enumerate() {
            self.twist(&mut message);
            if !self.loses(index, &message) {
                kept.push(message);
            }
        }
        if self.has(TransportFlaw::SendsBackwards) {
            kept.reverse();
        }
        let mut answers = self.inner.publish(kept).await;
        if self.has(TransportFlaw::RefusesTogether) && answers.iter().any(Result::is_err) {
            let refuse = || Err(TransportError::new(TransportErrorKind::Refused, "publish", "another was refused"));
            answers = (0..count).map(|_| refuse()).collect();
        }
        answers.resize_with(count, || Ok(()));
        if self.has(TransportFlaw::SwallowsUnrouted) {
            let is_unrouted = |error: &TransportError| error.kind() == TransportErrorKind::NoRoute;
            answers.iter_mut().filter(|answer| answer.as_ref().is_err_and(is_unrouted)).for_each(|it| *it = Ok(()));
        }
        if self.has(TransportFlaw::ReportsFullAsUnavailable) {
            let is_nacked = |error: &TransportError| error.kind() == TransportErrorKind::Nacked;
            let away = || Err(TransportError::new(TransportErrorKind::Unavailable, "publish", "it is away"));
            answers.iter_mut().filter(|answer| answer.as_ref().is_err_and(is_nacked)).for_each(|it| *it = away());
        }
        answers
    }

    async fn reachable(&self) -> Result<(), TransportError> {
        if self.has(TransportFlaw::ReportsUnavailable) {
            return Err(TransportError::new(TransportErrorKind::Unavailable, "publish", "it is away"));
        }
        self.inner.reachable().await
    }

    async fn subscribe(&self, subscription: Subscription) -> Result<Box<dyn Incoming>, TransportError> {
        let mut subscription = subscription;
        match self.flaw {
            Some(TransportFlaw::SplitsNames) => {
                let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
                *subscriptions += 1;
                subscription.name = format!("{}-{subscriptions}", subscription.name);
            }
            Some(TransportFlaw::JoinsNames) => subscription.name = "all".into(),
            Some(TransportFlaw::IgnoresPrefetch) => subscription.prefetch = usize::MAX,
            _ => {}
        }
        let incoming = self.inner.subscribe(subscription).await?;
        Ok(Box::new(FaultyIncoming { incoming, flaw: self.flaw, open: BTreeSet::new() }))
    }

    async fn dead_letters(
        &self,
        subscription: &str,
        prefetch: usize,
    ) -> Result<Option<Box<dyn Incoming>>, TransportError> {
        let name = match self.flaw {
            Some(TransportFlaw::SplitsNames) => format!("{subscription}-1"),
            Some(TransportFlaw::JoinsNames) => "all".into(),
            Some(TransportFlaw::HidesDeadLetters) => format!("{subscription}-nowhere"),
            _ => subscription.to_owned(),
        };
        let incoming = self.inner.dead_letters(&name, prefetch).await?;
        let flaw = self.has(TransportFlaw::DropsDeadLetters).then_some(TransportFlaw::AcceptsRejected);
        let faulty = |incoming| Box::new(FaultyIncoming { incoming, flaw, open: BTreeSet::new() }) as Box<dyn Incoming>;
        Ok(incoming.map(faulty))
    }
}

struct FaultyIncoming {
    incoming: Box<dyn Incoming>,
    flaw: Option<TransportFlaw>,
    /// The tags that are not settled yet.
    open: BTreeSet<u64>,
}

#[async_trait]
impl Incoming for FaultyIncoming {
    async fn receive(&mut self, limit: usize) -> Result<Vec<Delivery>, TransportError> {
        let mut deliveries = self.incoming.receive(limit).await?;
        self.open.extend(deliveries.iter().map(|delivery| delivery.tag));
        if self.flaw == Some(TransportFlaw::ForgetsDeliveries) {
            for delivery in &mut deliveries {
                delivery.redelivered = false;
            }
        }
        if self.flaw == Some(TransportFlaw::BelievesSenders) {
            for delivery in &mut deliveries {
                delivery.user = delivery.message.as_ref().ok().and_then(|message| message.headers.reply_to.clone());
            }
        }
        if self.flaw == Some(TransportFlaw::AcceptsUnsettled) {
            let settled: Vec<_> = deliveries.iter().map(|delivery| (delivery.tag, Settlement::Accept)).collect();
            self.incoming.settle(&settled).await?;
        }
        Ok(deliveries)
    }

    async fn settle(&mut self, settled: &[(u64, Settlement)]) -> Result<(), TransportError> {
        let void = settled.iter().filter(|(tag, _)| !self.open.remove(tag)).count();
        match self.flaw {
            Some(TransportFlaw::RefusesVoidTags) if void > 0 => {
                Err(TransportError::new(TransportErrorKind::Refused, "settle", format!("{void} tags are void")))
            }
            Some(TransportFlaw::AcceptsUnsettled) => Ok(()),
            Some(TransportFlaw::AcceptsRejected) => {
                let accepted: Vec<_> = settled.iter().map(|(tag, _)| (*tag, Settlement::Accept)).collect();
                self.incoming.settle(&accepted).await
            }
            _ => self.incoming.settle(settled).await,
        }
    }
}
