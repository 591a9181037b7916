//! Whether the runtime and the shop say the same of each order.

use std::collections::{BTreeMap, BTreeSet};

use saga_core::{StepPhase, store::Status};

use super::{Audit, Books, OrderSaga};

/// Compares what the runtime says with what stands in the books.
pub fn compare(audit: &mut Audit, sagas: &[OrderSaga], books: &Books) {
    let mut of_order: BTreeMap<&str, Vec<&OrderSaga>> = BTreeMap::new();
    for saga in sagas {
        of_order.entry(&saga.order.order_id).or_default().push(saga);
    }
    for (order_id, sagas) in &of_order {
        check_end(audit, order_id, sagas, books);
        check_content(audit, order_id, sagas, books);
        check_answers(audit, order_id, sagas, books);
    }
    for saga in sagas {
        check_records(audit, saga);
    }
    for order_id in books.orders.keys().filter(|order_id| !of_order.contains_key(order_id.as_str())) {
        audit.find(order_id, "the shop has it, but the runtime has no saga of it");
    }
}

/// Whether the order stands as its saga ended. An order that was started again may stand as either of its sagas did.
fn check_end(audit: &mut Audit, order_id: &str, sagas: &[&OrderSaga], books: &Books) {
    let Some(order) = books.orders.get(order_id) else {
        if let Some(saga) = sagas.iter().find(|saga| was_done(saga.phase("place-order"))) {
            audit.find(order_id, format!("its saga {} has placed it, but the shop has no such order", saga.key));
        }
        return;
    };
    let meant = |status: Status| match status {
        Status::Completed => Some("confirmed"),
        Status::Compensated => Some("cancelled"),
        // What is under way, stuck or paused is found by itself.
        _ => None,
    };
    if sagas.iter().all(|saga| meant(saga.status).is_some_and(|meant| meant != order.status))
        && let Some(saga) = sagas.last()
    {
        audit.find(order_id, format!("its saga is {}, but the order is {}", saga.status, order.status));
    }
}

/// Whether the shop's tables say what was ordered.
fn check_content(audit: &mut Audit, order_id: &str, sagas: &[&OrderSaga], books: &Books) {
    let Some(saga) = sagas.first() else { return };
    let asked = &saga.order;
    if let Some(order) = books.orders.get(order_id) {
        let written = (order.customer.as_str(), order.total_cents, order.freight_cents);
        if written != (asked.customer.as_str(), asked.total_cents, asked.freight_cents) {
            audit.find(order_id, "the order in the shop is not the one that its saga was started with");
        }
    }
    if !sagas.iter().any(|saga| was_done(saga.phase("reserve-stock"))) {
        return;
    }
    let asked: BTreeSet<(i64, &str, i64)> =
        (0..).zip(&asked.items).map(|(number, item)| (number, item.sku.as_str(), item.quantity)).collect();
    let reserved = books.items.get(order_id).map(Vec::as_slice).unwrap_or_default();
    let reserved: BTreeSet<(i64, &str, i64)> =
        reserved.iter().map(|(number, sku, quantity)| (*number, sku.as_str(), *quantity)).collect();
    for (_, sku, quantity) in asked.difference(&reserved) {
        audit.find(order_id, format!("{quantity} of {sku} were ordered, but not reserved as such"));
    }
    for (_, sku, quantity) in reserved.difference(&asked) {
        audit.find(order_id, format!("{quantity} of {sku} are reserved, but not ordered as such"));
    }
}

/// Whether the services outside know of the refusals that ended sagas.
fn check_answers(audit: &mut Audit, order_id: &str, sagas: &[&OrderSaga], books: &Books) {
    for (step, answered) in [("charge-card", &books.charges_answered), ("book-shipment", &books.shipments_answered)] {
        let was_refused = sagas.iter().any(|saga| saga.phase(step) == Some(StepPhase::Rejected));
        if was_refused && !answered.contains(order_id) {
            audit.find(order_id, format!("its {step} was refused, but the service outside has no such answer"));
        }
    }
}

/// Whether what a saga did is recorded.
fn check_records(audit: &mut Audit, saga: &OrderSaga) {
    for step in &saga.steps {
        let is_missing = match step.phase {
            StepPhase::Done | StepPhase::Rejected => !step.is_recorded,
            // A call that may have happened is undone without a record of it; what was written here is not.
            StepPhase::Undone if ["place-order", "reserve-stock"].contains(&step.name.as_str()) => {
                !step.is_recorded || !step.is_undo_recorded
            }
            StepPhase::Undone => !step.is_undo_recorded,
            _ => false,
        };
        if is_missing {
            let (name, phase) = (&step.name, step.phase.as_str());
            audit.find(&saga.key, format!("its step {name} is {phase}, but there is no record of that"));
        }
    }
}

fn was_done(phase: Option<StepPhase>) -> bool {
    matches!(phase, Some(StepPhase::Done | StepPhase::Undone | StepPhase::UndoSkipped))
}
