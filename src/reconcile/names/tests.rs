use serde_json::{Value, json};

use crate::fixtures::*;
use crate::snapshot::Layout::{Single, Split};

/// What stands in the way of `mine`, which wants hens, in a meadow with these objects.
fn conflict(neighbours: &[Seen]) -> Option<String> {
    let mut objects = farm(&["hens"]);
    objects.extend([binding("mine", json!({})), home(json!({"legacy": {}}))]);
    objects.extend_from_slice(neighbours);
    let told = |layout| {
        let why = play(layout, &objects, "mine").why();
        let conflict = why.strip_prefix("False NamingConflicts Error Unable to bind APIs: naming conflict with ");
        assert!(conflict.is_some() || why == "True", "{why}");
        conflict.map(Into::into)
    };
    let split = told(Split);
    assert_eq!(split, told(Single), "both layouts");
    split
}

fn check(neighbours: &[Seen], expect: &str) {
    assert_eq!(conflict(neighbours).as_deref(), Some(expect));
}

fn no_conflict(neighbours: &[Seen]) {
    assert_eq!(conflict(neighbours), None);
}

/// A CRD of the meadow with these accepted names; the plural makes its own.
fn crd(names: Value) -> Seen {
    let other = json!({"plural": "x", "singular": "y", "kind": "Z", "listKind": "ZList"});
    own_crd("goats", json!({"status": {"acceptedNames": other}})).but(json!({"status": {"acceptedNames": names}}))
}

/// A neighbour that has a bound CRD of uid `s-<plural>`, whose accepted names are those of hens.
fn neighbour(name: &str, plural: &str) -> [Seen; 2] {
    let taken = json!({"status": {"acceptedNames": names("hens")}});
    [binding(name, has_bound(&[plural])), bound_crd(plural, taken)]
}

#[test]
fn names_are_compared_in_order_plural_singular_short_kind_list_kind() {
    let of = |field: &str| format!("CustomResourceDefinition \"goats.farm.test\": spec.names.{field} is forbidden");
    let mut all = json!({"plural": "hens", "singular": "hen", "kind": "Hen", "listKind": "HenList"});
    for (field, shown) in [("plural", "hens"), ("singular", "hen"), ("kind", "Hen"), ("listKind", "HenList")] {
        check(&[crd(all.clone())], &of(&format!("{field}={shown}")));
        all[field] = json!("else");
    }
    no_conflict(&[crd(all)]);
}

#[test]
fn paths_and_kinds_are_two_sorts_of_names() {
    let of = |field: &str| format!("CustomResourceDefinition \"goats.farm.test\": spec.names.{field} is forbidden");
    check(&[crd(json!({"singular": "hens"}))], &of("plural=hens"));
    check(&[crd(json!({"shortNames": ["q", "hen"]}))], &of("singular=hen"));
    check(&[crd(json!({"kind": "HenList"}))], &of("listKind=HenList"));
    check(&[crd(json!({"listKind": "Hen"}))], &of("kind=Hen"));
    no_conflict(&[crd(json!({"plural": "Hen", "kind": "hens"}))]);
}

#[test]
fn any_short_name_conflicts_and_all_are_told() {
    let short = schema("hens", json!({"spec": {"names": {"shortNames": ["h", "hn"]}}}));
    let expect = "CustomResourceDefinition \"goats.farm.test\": spec.names.shortNames=[h hn] is forbidden";
    check(&[short.clone(), crd(json!({"plural": "hn"}))], expect);
    check(&[short.clone(), crd(json!({"shortNames": ["hn"]}))], expect);
    no_conflict(&[short, crd(json!({"kind": "h", "listKind": "hn"}))]);
}

#[test]
fn only_names_of_the_same_group_conflict() {
    no_conflict(&[crd(names("hens")).but(json!({"spec": {"group": "zoo.test"}}))]);
}

#[test]
fn d4_empty_names_never_conflict() {
    let nameless = schema("hens", json!({"spec": {"names": {"singular": "", "listKind": "", "shortNames": [""]}}}));
    no_conflict(&[nameless, crd(json!({"singular": "", "listKind": "", "shortNames": [""]}))]);
    // One that is found by another name is not told by an empty one.
    let nameless = schema("hens", json!({"spec": {"names": {"singular": "", "shortNames": [""]}}}));
    let expect = "CustomResourceDefinition \"goats.farm.test\": spec.names.kind=Hen is forbidden";
    check(&[nameless, crd(json!({"singular": "", "shortNames": [""], "kind": "Hen"}))], expect);
}

#[test]
fn a_conflict_with_what_a_binding_has_bound_names_its_export() {
    let [other, crd] = neighbour("other", "goats");
    let detail = "spec.names.plural=hens is forbidden";
    let bound_to = |reference: Value| {
        let spec = json!({"spec": {"reference": reference}});
        [other.clone().but(json!({"spec": {"reference": null}})).but(spec), crd.clone()]
    };
    check(
        &bound_to(json!({"export": {"path": "root:zoo", "name": "zoo"}})),
        &format!("APIBinding \"other\" bound to APIExport root:zoo:zoo: {detail}"),
    );
    check(
        &bound_to(json!({"export": {"name": "zoo"}})),
        &format!("APIBinding \"other\" bound to local APIExport \"zoo\": {detail}"),
    );
    check(&bound_to(json!({})), &format!("APIBinding \"other\": {detail}"));
}

#[test]
fn d2_a_neighbour_without_reference_is_told_by_its_name() {
    let [other, crd] = neighbour("other", "goats");
    check(
        &[other.but(json!({"spec": {"reference": {"export": null}}})), crd],
        "APIBinding \"other\": spec.names.plural=hens is forbidden",
    );
}

#[test]
fn d1_a_bound_crd_that_is_missing_offers_no_names() {
    no_conflict(&[binding("other", has_bound(&["goats"]))]);
}

#[test]
fn bound_crds_that_nobody_here_lists_and_crds_of_other_workspaces_do_not_count() {
    let [other, crd] = neighbour("other", "goats");
    no_conflict(std::slice::from_ref(&crd));
    no_conflict(&[other.but(json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}})), crd]);
    no_conflict(&[own_crd("hens", json!({"metadata": {"annotations": {"kcp.io/cluster": "hill"}}}))]);
}

#[test]
fn d9_the_first_by_uid_decides_then_cluster_then_name_and_one_without_uid_is_last() {
    let told = |own: Value, bound: Value| {
        let uid = |uid: Value| json!({"metadata": {"uid": uid}});
        let [other, crd] = neighbour("other", "goats");
        let own = own_crd("hens", json!({})).but(uid(own));
        let text = conflict(&[other, crd.but(uid(bound)), own]).unwrap();
        text.split(' ').next().unwrap().to_owned()
    };
    assert_eq!(told(json!("a"), json!("b")), "CustomResourceDefinition");
    assert_eq!(told(json!("b"), json!("a")), "APIBinding");
    assert_eq!(told(json!("a"), json!("a")), "CustomResourceDefinition", "`meadow` before `system:bound-crds`");
    assert_eq!(told(json!("z"), json!(null)), "CustomResourceDefinition");
    assert_eq!(told(json!(null), json!("z")), "APIBinding");
    let twins = ["bats", "ants"]
        .map(|plural| own_crd(plural, json!({"metadata": {"uid": "u"}, "status": {"acceptedNames": names("hens")}})));
    assert!(conflict(&twins).unwrap().contains("\"ants.farm.test\""), "then by name");
}

#[test]
fn d9_of_several_bindings_that_list_a_crd_the_first_by_name_is_told() {
    let [zed, crd] = neighbour("zed", "goats");
    let [ann, _] = neighbour("ann", "goats");
    assert!(conflict(&[zed, crd, ann]).unwrap().starts_with("APIBinding \"ann\""));
}

#[test]
fn d9_a_bound_crd_that_the_binding_itself_lists_never_counts_against_it() {
    let [other, crd] = neighbour("other", "goats");
    let mine = binding("mine", has_bound(&["goats"]));
    no_conflict(&[other, crd, mine]);
}

#[test]
fn d14_names_that_are_not_judged_count_as_asked_for_until_the_schema_is_bound() {
    let asking = own_crd("hens", unjudged());
    let expect = "CustomResourceDefinition \"hens.farm.test\": spec.names.plural=hens is forbidden";
    check(std::slice::from_ref(&asking), expect);
    no_conflict(&[asking, binding("mine", has_bound(&["hens"]))]);
    let refused = json!([{"type": "NamesAccepted", "status": "False"}]);
    let judged = own_crd("hens", json!({"status": {"acceptedNames": null, "conditions": refused}}));
    no_conflict(&[judged]);
    let judged = own_crd("goats", json!({"spec": {"names": names("hens")}}));
    no_conflict(&[judged]);
}

#[test]
fn d14_what_is_granted_counts_even_against_a_bound_schema() {
    let expect = "CustomResourceDefinition \"hens.farm.test\": spec.names.plural=hens is forbidden";
    check(&[own_crd("hens", json!({})), binding("mine", has_bound(&["hens"]))], expect);
}

#[test]
fn d14_a_bound_crd_that_was_just_created_takes_the_names_it_asks_for() {
    let crd = bound_crd("goats", json!({"spec": {"names": names("hens")}})).but(unjudged());
    let other = binding("other", has_bound(&["goats"]));
    let expect = "APIBinding \"other\" bound to APIExport root:farm:farm: spec.names.plural=hens is forbidden";
    check(&[other, crd], expect);
}

/// There the bound CRDs are the cluster's own ones as well.
#[test]
fn d9_a_binding_in_the_cluster_of_the_bound_crds_is_no_rival_of_its_own() {
    let there = json!({"metadata": {"annotations": {"kcp.io/cluster": "system:bound-crds", "kcp.io/path": null}}});
    let mut objects = farm(&["hens"]);
    objects.extend([binding("mine", has_bound(&["hens"])).but(there.clone()), home(json!({})).but(there)]);
    let snapshot = world(Split, &objects);
    let key = crate::api::BindingKey::new("system:bound-crds", "mine");
    let explanation = crate::explain::explain(&snapshot, &key);
    assert!(explanation.resources.iter().all(|resource| resource.conflict.is_none()), "{explanation}");
    assert_eq!(explanation.resources.len(), 1, "{explanation}");
}
