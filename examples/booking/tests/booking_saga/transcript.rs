//! What was run, step by step, and what failed.

use std::collections::BTreeMap;
use std::fmt;

use cucumber::event::{self, Hook, RetryableScenario, Scenario, Step, StepError};
use cucumber::{Event, World, Writer, cli, gherkin, parser, writer};

/// The lines of all scenarios, and the first step of each that failed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    lines: Vec<String>,
    /// How many scenarios were run.
    pub(crate) scenarios: usize,
    /// The failed step by the name of the scenario.
    pub(crate) failures: BTreeMap<String, String>,
}

impl Transcript {
    fn scenario<W>(&mut self, scenario: &gherkin::Scenario, event: Scenario<W>) {
        match event {
            Scenario::Started => {
                self.scenarios += 1;
                self.lines.push(format!("{}: {}", scenario.keyword, scenario.name));
            }
            Scenario::Hook(which, Hook::Failed(_, info)) => {
                self.failed(scenario, format!("{which} hook"), &StepError::Panic(info).to_string());
            }
            Scenario::Background(step, event) | Scenario::Step(step, event) => self.step(scenario, &step, event),
            _ => {}
        }
    }

    fn step<W>(&mut self, scenario: &gherkin::Scenario, step: &gherkin::Step, event: Step<W>) {
        let text = format!("{} {}", step.keyword.trim(), step.value);
        match event {
            Step::Started => {}
            Step::Passed { .. } => self.lines.push(format!("  ok      {text}")),
            Step::Skipped => self.failed(scenario, text, "there is no such step"),
            Step::Failed(_, _, _, error) => self.failed(scenario, text, &error.to_string()),
        }
    }

    fn failed(&mut self, scenario: &gherkin::Scenario, step: String, error: &str) {
        self.lines.push(format!("  FAILED  {step}\n          {error}"));
        self.failures.entry(scenario.name.clone()).or_insert(step);
    }
}

impl<W: World> Writer<W> for Transcript {
    type Cli = cli::Empty;

    async fn handle_event(&mut self, event: parser::Result<Event<event::Cucumber<W>>>, _cli: &Self::Cli) {
        match event.map(Event::into_inner) {
            Ok(event::Cucumber::Feature(_, event)) => match event {
                event::Feature::Scenario(scenario, RetryableScenario { event, .. })
                | event::Feature::Rule(_, event::Rule::Scenario(scenario, RetryableScenario { event, .. })) => {
                    self.scenario(&scenario, event);
                }
                _ => {}
            },
            Ok(_) => {}
            Err(error) => {
                self.lines.push(error.to_string());
                self.failures.insert("the file".to_owned(), error.to_string());
            }
        }
    }
}

/// The scenarios run one after the other, so their events come in order.
impl writer::Normalized for Transcript {}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}
