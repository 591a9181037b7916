//! The steps of an order, under the control of a test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use saga_core::memory::MemoryConn;
use saga_core::{State, StepError, saga_step};
use tokio::sync::watch;

pub(crate) mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "payments", no_compensation)]
    pub async fn charge_card(cents: u64) -> Result<u64, StepError>;

    #[saga_step(service = "payments", no_compensation)]
    pub async fn send_receipt(cents: u64) -> Result<u64, StepError>;
}

#[saga_step(no_compensation)]
pub(crate) async fn reserve(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    Ok(tx.add("reserved", 1).map(|_| cents)?)
}

#[saga_step(implements = contracts::charge_card, no_compensation)]
pub(crate) async fn charge_card(tx: &mut MemoryConn, cents: u64, State(gate): State<Gate>) -> Result<u64, StepError> {
    gate.pass().await;
    Ok(tx.add("charged", 1).map(|_| cents)?)
}

#[saga_step(implements = contracts::send_receipt, no_compensation)]
pub(crate) async fn send_receipt(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    Ok(tx.add("receipts", 1).map(|_| cents)?)
}

/// Lets a step go on while it is open.
#[derive(Clone)]
pub(crate) struct Gate(pub(crate) watch::Sender<bool>);

impl Gate {
    pub(crate) fn open() -> Self {
        Self(watch::Sender::new(true))
    }

    async fn pass(&self) {
        // The sender lives as long as this value.
        let _ = self.0.subscribe().wait_for(|is_open| *is_open).await;
    }
}

/// What the last step of an order does next instead of going well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirming {
    Fails,
    Rejects,
    TakesLong,
}

/// The last step of an order, under the control of a test.
#[derive(Clone)]
pub(crate) struct LastStep {
    pub(crate) next: Arc<Mutex<Option<Confirming>>>,
    pub(crate) gate: Gate,
    /// Set while it waits at its gate.
    pub(crate) has_begun: watch::Sender<bool>,
}

#[saga_step(no_compensation)]
pub(crate) async fn confirm(tx: &mut MemoryConn, cents: u64, State(last): State<LastStep>) -> Result<u64, StepError> {
    tx.add("confirmed", 1)?;
    last.has_begun.send_replace(true);
    last.gate.pass().await;
    let next = last.next.lock().unwrap().take();
    match next {
        Some(Confirming::Fails) => Err(StepError::retry("the printer is busy")),
        Some(Confirming::Rejects) => Err(StepError::reject("sold out")),
        Some(Confirming::TakesLong) => {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok(cents)
        }
        None => Ok(cents),
    }
}
