//! How the state of a saga is stored: as JSON, with the items of lists packed.

use super::state::SagaState;

impl SagaState {
    /// The state as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Field names and strings are valid JSON by construction, and a vector takes every write.
        if self.items.is_empty() {
            serde_json::to_vec(self).unwrap_or_default()
        } else {
            serde_json::to_vec(&self.packed()).unwrap_or_default()
        }
    }

    /// The state that a store kept.
    ///
    /// # Errors
    /// When the bytes are not a state, or one of another number of steps.
    pub fn decode(bytes: &[u8], steps: usize) -> Result<Self, String> {
        let mut state: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("its state is not readable: {error}"))?;
        if state.steps.len() != steps {
            return Err(format!("its state has {} steps, but its definition has {steps}", state.steps.len()));
        }
        state.unpack().map_err(|problem| format!("its state is not readable: {problem}"))?;
        Ok(state)
    }

    /// The state as it is stored: the items are packed, and no steps of it.
    fn packed(&self) -> Self {
        let defined = self.items.first().map_or(self.steps.len(), |items| items.first);
        let mut items = self.items.clone();
        for items in &mut items {
            items.pack(&self.steps[items.range()]);
        }
        Self {
            phase: self.phase,
            steps: self.steps[..defined].to_vec(),
            items,
            position: self.position,
            messages: self.messages,
            failure: self.failure.clone(),
            reports: self.reports.clone(),
            stuck: self.stuck.clone(),
            also_stuck: self.also_stuck.clone(),
            caller: self.caller.clone(),
            traceparent: self.traceparent.clone(),
            deadline: self.deadline,
            within: self.within,
            forced: self.forced.clone(),
            paused: self.paused.clone(),
        }
    }

    fn unpack(&mut self) -> Result<(), String> {
        let defined = self.steps.len();
        for number in 0..self.items.len() {
            let step = self.items[number].step;
            let is_twice = self.items[..number].iter().any(|items| items.step == step);
            if is_twice || step >= defined {
                return Err("it has items of a step that has none".to_owned());
            }
            self.items[number].first = self.steps.len();
            let steps = self.items[number].unpack()?;
            self.steps.extend(steps);
        }
        Ok(())
    }
}
