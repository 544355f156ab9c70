//! Which layout of locks a dump has (SPEC 5).

use apibinding::api::LogicalCluster;
use apibinding::snapshot::Layout;

use super::failure::Failure;

/// How many LogicalClusters an error names.
const NAMED: usize = 3;

/// What the LogicalClusters tell. `None`: nothing.
pub fn detect<'a>(clusters: impl IntoIterator<Item = &'a LogicalCluster>) -> Result<Option<Layout>, Failure> {
    let (mut split, mut single) = (Vec::new(), Vec::new());
    for cluster in clusters {
        let name = || apibinding::api::cluster_of(&cluster.metadata).to_string();
        match Layout::of(cluster) {
            Some(Layout::Split) => split.push(name()),
            Some(Layout::Single) => single.push(name()),
            _ => {}
        }
    }
    match (split.is_empty(), single.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => Ok(Some(Layout::Split)),
        (true, false) => Ok(Some(Layout::Single)),
        (false, false) => Err(Failure::Layout { split: told(&split), single: told(&single) }),
    }
}

fn told(names: &[String]) -> String {
    let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match (names.len(), names.len().saturating_sub(NAMED)) {
        (1, _) => format!("{shown} is"),
        (_, 0) => format!("{shown} are"),
        (_, more) => format!("{shown} and {more} more are"),
    }
}

#[cfg(test)]
mod tests {
    use apibinding::snapshot::Layer;

    use super::*;

    fn cluster(name: &str, layers: &[Layer]) -> LogicalCluster {
        let locks = layers.iter().map(|layer| (layer.annotation().to_owned(), "{}".to_owned()));
        let mut cluster = LogicalCluster::default();
        cluster.metadata.annotations = Some(locks.chain([("kcp.io/cluster".to_owned(), name.to_owned())]).collect());
        cluster
    }

    #[track_caller]
    fn check(clusters: &[&[Layer]], expect: Option<Option<Layout>>) {
        let clusters: Vec<_> = clusters.iter().map(|layers| cluster("c", layers)).collect();
        assert_eq!(detect(&clusters).ok(), expect);
    }

    #[test]
    fn the_annotations_tell() {
        use Layer::*;
        check(&[], Some(None));
        check(&[&[]], Some(None));
        check(&[&[], &[Legacy]], Some(Some(Layout::Single)));
        check(&[&[Legacy, Bindings], &[Pending], &[]], Some(Some(Layout::Split)));
        check(&[&[Legacy, Crds], &[Legacy]], None);
    }

    #[test]
    fn a_contradiction_names_both_sides() {
        let mut clusters: Vec<_> = ["a", "b", "c", "d", "e"].map(|name| cluster(name, &[Layer::Legacy])).into();
        clusters.push(cluster("f", &[Layer::Bindings]));
        let error = detect(&clusters).unwrap_err().to_string();
        assert!(error.contains("f is split, but a, b, c and 2 more are single"), "{error}");
    }
}
