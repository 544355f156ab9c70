//! Which binding a BINDING argument means.

use std::collections::BTreeSet;

use apibinding::api::{BindingKey, NameError};
use similar::get_close_matches;

use super::failure::Failure;
use super::world::World;

/// How many near ones an error names, and how near they have to be.
const NEAR: usize = 3;
const LIKENESS: f32 = 0.7;

/// The key of a binding among the `known` ones: the cluster is an id, or else a path.
pub fn find(world: &World, known: &BTreeSet<BindingKey>, text: &str) -> Result<BindingKey, Failure> {
    let asked: BindingKey = text.parse().map_err(|wrong: NameError| Failure::Unknown(wrong.to_string()))?;
    if known.contains(&asked) {
        return Ok(asked);
    }
    let clusters = world.paths.iter().filter(|(_, path)| path.as_str() == asked.cluster.as_str());
    let keys = clusters.map(|(cluster, _)| BindingKey::new(cluster.clone(), asked.name.clone()));
    let keys: Vec<BindingKey> = keys.filter(|key| known.contains(key)).collect();
    match &keys[..] {
        [key] => Ok(key.clone()),
        [] => Err(Failure::Unknown(unknown(world, known, &asked, text))),
        several => {
            let several = several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Err(Failure::Unknown(format!("more than one binding is called `{text}`: say one of {several}")))
        }
    }
}

fn unknown(world: &World, known: &BTreeSet<BindingKey>, asked: &BindingKey, text: &str) -> String {
    let is_path = asked.cluster.as_str().contains(':') && !asked.cluster.as_str().starts_with("system:");
    let spellings: Vec<String> = known.iter().map(|key| spelling(world, key, is_path)).collect();
    let candidates: Vec<&str> = spellings.iter().map(String::as_str).collect();
    let mut near = get_close_matches(&*asked.to_string(), &candidates, NEAR, LIKENESS);
    // Without its cluster, or with another one, a name is still a name.
    let namesakes =
        known.iter().zip(&candidates).filter(|(key, _)| key.name == asked.name).map(|(_, spelling)| *spelling);
    let namesakes: Vec<&str> = namesakes.filter(|namesake| !near.contains(namesake)).collect();
    near.extend(namesakes);
    near.truncate(NEAR);
    let hint = match (&near[..], known.len()) {
        ([], 0) => "the input has none at all".to_owned(),
        ([], count) => format!("none of the {count} in the input has a name like that (`plan -v` names them)"),
        (near, _) => format!("did you mean {}?", near.join(", ")),
    };
    format!("there is no binding `{text}`: {hint}")
}

/// A key as the person who asks writes it: with the cluster's path, if that is known, or its id.
fn spelling(world: &World, key: &BindingKey, is_path: bool) -> String {
    match world.paths.get(&key.cluster).filter(|_| is_path) {
        Some(path) => format!("{path}|{}", key.name),
        None => key.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::LayoutChoice;
    use crate::cli::read::{Found, STDIN, read};

    fn world(clusters: &[(&str, &str)]) -> World {
        let binding = |(cluster, path): &(&str, &str)| {
            let annotations = format!("{{kcp.io/cluster: '{cluster}', kcp.io/path: '{path}'}}");
            format!(
                "---\napiVersion: apis.kcp.io/v1alpha2\nkind: APIBinding\nmetadata: {{name: geese, annotations: \
                 {annotations}}}\n"
            )
        };
        let text: String = clusters.iter().map(binding).collect();
        let found = read(&[STDIN.into()], &[], &mut Some(text.as_bytes())).unwrap();
        World::new(found, Found::default(), LayoutChoice::Auto, Default::default()).unwrap()
    }

    #[track_caller]
    fn check(clusters: &[(&str, &str)], asked: &str, expect: &str) {
        let world = world(clusters);
        let known = world.snapshot.bindings().into_iter().collect();
        let found = find(&world, &known, asked).map_or_else(|wrong| wrong.to_string(), |key| key.to_string());
        assert_eq!(found, expect);
    }

    #[test]
    fn by_id_or_path() {
        let clusters = [("c1", "root:meadow"), ("c2", "root:pond"), ("", "")];
        check(&clusters, "c1/geese", "c1|geese");
        check(&clusters, "root:pond|geese", "c2|geese");
        check(&clusters, "geese", "geese");
        check(&clusters, "a/b/c", "`a/b/c` is no binding: expected `CLUSTER/NAME` or `CLUSTER|NAME`");
    }

    #[test]
    fn an_id_goes_before_a_path_and_a_path_may_be_ambiguous() {
        check(&[("root", "old"), ("c1", "root")], "root/geese", "root|geese");
        let several = "more than one binding is called `old/geese`: say one of c1|geese, c2|geese";
        check(&[("c1", "old"), ("c2", "old")], "old/geese", several);
    }

    #[test]
    fn without_any_binding_there_are_no_near_ones() {
        let world = world(&[("c1", "root:meadow")]);
        let error = find(&world, &BTreeSet::new(), "c1/geese").unwrap_err().to_string();
        assert_eq!(error, "there is no binding `c1/geese`: the input has none at all");
    }
}
