//! Natural join of samples and construction of the resulting samples.

use std::collections::BTreeMap;

use takt_core::InstanceHandle;
use takt_xtypes::dynamic::{DynamicData, DynamicType, FieldPart, Scalar};
use takt_xtypes::sql::Selected;
use takt_xtypes::{Representation, TypeSupport, deserialize};

use crate::{Error, Result};

/// Maximum number of instances remembered for each topic. Samples of further instances are
/// discarded.
pub(crate) const INSTANCES_MAX: usize = 1024;

/// Maximum number of combinations examined for one new sample. The rest is skipped and counted.
const STEPS_MAX: usize = 1 << 16;

/// Description of a join: the join conditions and the construction of results.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Members that each pair of topics has in common.
    common: Vec<Vec<Vec<String>>>,
    /// Members of the result, each with the index of its topic and the path of its field there.
    sources: Vec<(String, usize, Vec<FieldPart>)>,
}

/// Latest sample of each instance of each topic.
#[derive(Debug)]
pub(crate) struct Memory {
    topics: Vec<BTreeMap<InstanceHandle, DynamicData>>,
    /// Samples that were discarded for lack of space, and searches that ended before all
    /// combinations were examined.
    pub(crate) refused: u64,
}

fn members(data: &DynamicData) -> Vec<String> {
    match data {
        DynamicData::Struct(members) => members.iter().map(|(name, _)| name.to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the member or element of the data at a path.
fn at<'a>(data: &'a DynamicData, path: &[FieldPart]) -> Option<&'a DynamicData> {
    path.iter().try_fold(data, |data, element| match (element, data) {
        (FieldPart::Name(name), data) => data.member(name),
        (FieldPart::Index(index), DynamicData::Sequence(elements)) => elements.get(*index as usize),
        _ => None,
    })
}

impl Plan {
    pub(crate) fn new(selected: &[Selected], types: &[&DynamicType], result: &DynamicType) -> Result<Self> {
        let defaults: Vec<DynamicData> = types.iter().map(|type_| type_.default_data()).collect();
        let names: Vec<Vec<String>> = defaults.iter().map(members).collect();
        let in_common = |a: &Vec<String>, b: &Vec<String>| a.iter().filter(|name| b.contains(name)).cloned().collect();
        let common: Vec<Vec<Vec<String>>> =
            names.iter().map(|a| names.iter().map(|b| in_common(a, b)).collect()).collect();
        for topic in 1..types.len() {
            if common[topic][..topic].iter().all(Vec::is_empty) {
                return Err(Error::bad_parameter(
                    "a joined topic shares no member with the topics before it".to_owned(),
                ));
            }
            for name in common[topic][..topic].iter().flatten() {
                let path = [FieldPart::Name(name.clone())];
                types[topic]
                    .field(&path)
                    .map_err(|error| Error::bad_parameter_from(format!("{name}: {error}"), error))?;
            }
        }
        let wanted = members(&result.default_data());
        let sources = if selected.is_empty() {
            let by_name = wanted.into_iter().map(|name| {
                let topic = names.iter().position(|names| names.contains(&name));
                let topic =
                    topic.ok_or_else(|| Error::bad_parameter(format!("no joined topic has a member {name}")))?;
                Ok((name.clone(), topic, vec![FieldPart::Name(name)]))
            });
            by_name.collect::<Result<_>>()?
        } else {
            let by_choice = selected.iter().map(|selected| {
                if !wanted.contains(&selected.name) {
                    return Err(Error::bad_parameter(format!("{} has no member {}", result.name(), selected.name)));
                }
                let topic = defaults.iter().position(|data| at(data, &selected.field).is_some());
                let topic = topic.ok_or_else(|| {
                    Error::bad_parameter(format!("no joined topic has a field for {}", selected.name))
                })?;
                Ok((selected.name.clone(), topic, selected.field.clone()))
            });
            by_choice.collect::<Result<_>>()?
        };
        let plan = Self { common, sources };
        let made = plan.make(&defaults.iter().collect::<Vec<_>>(), result);
        match result.encode(&made, Representation::Xcdr2) {
            Ok(_) => Ok(plan),
            Err(error) => {
                let what = format!("the selected fields do not fit {}: {error}", result.name());
                Err(Error::bad_parameter_from(what, error))
            }
        }
    }

    /// Builds a sample of the result from one sample of each topic.
    fn make(&self, samples: &[&DynamicData], result: &DynamicType) -> DynamicData {
        let mut made = result.default_data();
        if let DynamicData::Struct(members) = &mut made {
            for (name, topic, path) in &self.sources {
                let member = members.iter_mut().find(|(member, _)| **member == **name);
                if let (Some((_, member)), Some(value)) = (member, at(samples[*topic], path)) {
                    *member = value.clone();
                }
            }
        }
        made
    }

    /// Reports whether samples of two topics have equal values in their common members.
    fn joins(&self, (a, data_a): (usize, &DynamicData), (b, data_b): (usize, &DynamicData)) -> bool {
        self.common[a][b].iter().all(|name| {
            let (Some(left), Some(right)) = (data_a.member(name), data_b.member(name)) else { return false };
            let order = Scalar::of(left).zip(Scalar::of(right)).and_then(|(left, right)| left.compare(right));
            order == Some(std::cmp::Ordering::Equal)
        })
    }
}

impl Memory {
    pub(crate) fn new(topics: usize) -> Self {
        Self { topics: vec![BTreeMap::new(); topics], refused: 0 }
    }

    /// Removes an instance that is no longer alive.
    pub(crate) fn remove(&mut self, topic: usize, instance: InstanceHandle) {
        self.topics[topic].remove(&instance);
    }

    /// Stores a new sample of a topic and calls `made` with each resulting sample.
    pub(crate) fn add(
        &mut self,
        plan: &Plan,
        result: &DynamicType,
        (topic, instance, data): (usize, InstanceHandle, DynamicData),
        mut made: impl FnMut(DynamicData),
    ) {
        let known = &mut self.topics[topic];
        if known.len() >= INSTANCES_MAX && !known.contains_key(&instance) {
            self.refused += 1;
            return;
        }
        known.insert(instance, data);
        let mut search = Search { plan, topics: &self.topics, chosen: vec![None; self.topics.len()], steps: 0 };
        search.chosen[topic] = self.topics[topic].get(&instance);
        let complete = search.search(&mut |samples| made(plan.make(samples, result)));
        self.refused += u64::from(!complete);
    }
}

struct Search<'a> {
    plan: &'a Plan,
    topics: &'a [BTreeMap<InstanceHandle, DynamicData>],
    /// Sample chosen so far for each topic.
    chosen: Vec<Option<&'a DynamicData>>,
    steps: usize,
}

impl<'a> Search<'a> {
    /// Chooses a sample for each topic that has none yet. The recursion depth is at most the number
    /// of topics. Returns false if the limit of steps was reached.
    fn search(&mut self, made: &mut impl FnMut(&[&DynamicData])) -> bool {
        // Prefer a topic that shares members with those chosen, so that few of its samples match.
        let linked = |topic: &usize| {
            self.chosen[*topic].is_none()
                && (0..self.chosen.len())
                    .any(|other| self.chosen[other].is_some() && !self.plan.common[*topic][other].is_empty())
        };
        let Some(topic) = (0..self.chosen.len()).find(linked) else {
            let samples: Option<Vec<&DynamicData>> = self.chosen.iter().copied().collect();
            if let Some(samples) = samples {
                made(&samples);
            }
            return true;
        };
        for data in self.topics[topic].values() {
            self.steps += 1;
            if self.steps > STEPS_MAX {
                return false;
            }
            let chosen = self.chosen.iter().enumerate().filter_map(|(other, chosen)| Some((other, (*chosen)?)));
            if chosen.into_iter().all(|other| self.plan.joins((topic, data), other)) {
                self.chosen[topic] = Some(data);
                let complete = self.search(made);
                self.chosen[topic] = None;
                if !complete {
                    return false;
                }
            }
        }
        true
    }
}

/// Converts dynamic data to a value of the application's type.
pub(crate) fn typed<T: TypeSupport>(type_: &DynamicType, data: &DynamicData) -> Option<T> {
    let Ok(payload) = type_.encode(data, Representation::Xcdr2) else { return None };
    let mut value = T::default();
    deserialize(&mut value, &payload).is_ok().then_some(value)
}
