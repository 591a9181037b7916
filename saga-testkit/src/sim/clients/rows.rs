//! What an operator looks after.

use crate::checker::SagaPlan;
use crate::sim::sagas::{SUB, hosted_key};

/// A row that may be stuck: a saga, or a step that is hosted for it.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) saga: u32,
    pub(crate) key: String,
    /// The place of the hosted step.
    pub(crate) hosted: Option<u8>,
    /// Whether it is a saga that no other one is a step of.
    pub(crate) is_plain: bool,
}

impl Row {
    /// The row's number in the ledger: 0 is the saga, and the last one its sub-saga.
    pub(crate) fn number(&self) -> u8 {
        let own = if self.key.contains('>') { u8::MAX } else { 0 };
        self.hosted.map_or(own, |place| place + 1)
    }
}

/// What may be stuck in a service. The steps that other services host are looked after wherever they may be.
pub(crate) fn rows(plans: &[SagaPlan], service: u8) -> Vec<Row> {
    let mut rows = Vec::new();
    for (saga, plan) in (0..).zip(plans) {
        if service == 0 {
            let has_sub = plan.variants.iter().flat_map(|variant| &variant.steps).any(|step| step.is_sub);
            rows.push(Row { saga, key: plan.key.clone(), hosted: None, is_plain: !has_sub });
            if has_sub {
                rows.push(Row { saga, key: format!("{}>{SUB}", plan.key), hosted: None, is_plain: false });
            }
            continue;
        }
        let mut hosted: Vec<_> = plan.variants.iter().flat_map(|variant| (0..).zip(&variant.steps)).collect();
        hosted.retain(|(_, step)| step.host.is_some());
        hosted.dedup_by_key(|(_, step)| step.name.clone());
        rows.extend(hosted.into_iter().map(|(place, step)| Row {
            saga,
            key: hosted_key(&plan.key, step),
            hosted: Some(place),
            is_plain: false,
        }));
    }
    rows
}
