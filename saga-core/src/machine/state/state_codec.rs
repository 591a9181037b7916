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
            delay: self.delay,
            forced: self.forced.clone(),
            paused: self.paused.clone(),
            result: self.result.clone(),
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

#[cfg(test)]
mod tests {
    use super::super::state::{KeptResult, Phase};
    use super::*;

    /// A state that a version wrote which kept no results, of a saga of one step that completed.
    const OLD: &str = r#"{"p":"C","s":[{"p":"d","n":1}],"n":1}"#;

    #[test]
    fn a_state_without_a_result_is_read_and_written_as_before() {
        let state = SagaState::decode(OLD.as_bytes(), 1).unwrap();
        assert_eq!((state.phase, &state.result), (Phase::Completed, &None));
        assert_eq!(String::from_utf8(state.encode()).unwrap(), OLD);
    }

    #[test]
    fn a_result_is_read_as_it_was_written() {
        for kept in [KeptResult::Value("[1,\"a\"]".to_owned()), KeptResult::NotMade("it is too long".to_owned())] {
            let old = SagaState::decode(OLD.as_bytes(), 1).unwrap();
            let state = SagaState { result: Some(Box::new(kept)), ..old };
            assert_eq!(SagaState::decode(&state.encode(), 1).unwrap(), state);
        }
    }
}
