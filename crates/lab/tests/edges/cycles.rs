//! Finds import cycles: no file of a crate imports, directly or through others, a file that imports it, and neither
//! does a top-level module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::source::{CRATES, Module, Paths, Source};

/// An import: the file that imports, the file imported, and the name.
pub type Graph = BTreeMap<String, BTreeMap<String, String>>;

#[test]
fn no_file_imports_in_a_circle() {
    let circles = |name: &str| circles(&graph(&Source::read(name), |file, _| file.to_owned()));
    check("files", circles);
}

#[test]
fn no_module_imports_in_a_circle() {
    // Items of lib.rs itself belong to no module.
    let top = |_: &str, module: &Module| module.first().cloned().unwrap_or_default();
    let circles = |name: &str| {
        let mut graph = graph(&Source::read(name), top);
        graph.remove("");
        circles(&graph)
    };
    check("modules", circles);
}

/// A chain of names that is no circle, and one that is.
#[test]
fn a_circle_is_found_and_named() {
    let edges = [("a", "b"), ("b", "c"), ("c", "d"), ("c", "a"), ("d", "e")];
    let mut graph = Graph::new();
    for (from, to) in edges {
        graph.entry(from.into()).or_default().insert(to.into(), format!("{from}{to}"));
    }
    let found = circles(&graph);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].files, ["a", "b", "c"].map(String::from).into());
    assert_eq!(found[0].shortest, "a -(ab)-> b -(bc)-> c -(ca)-> a");
    graph.remove("c");
    assert!(circles(&graph).is_empty());
}

fn check(what: &str, circles: impl Fn(&str) -> Vec<Circle>) {
    let found: Vec<String> = CRATES
        .into_iter()
        .flat_map(|name| circles(name).into_iter().map(move |circle| (name, circle)))
        .map(|(name, circle)| format!("{name}: {what} import in a circle: {}", circle.shortest))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

struct Circle {
    files: BTreeSet<String>,
    shortest: String,
}

/// The imports, by the name that `label` gives to a file and its module.
pub fn graph(source: &Source, label: impl Fn(&str, &Module) -> String) -> Graph {
    let mut graph = Graph::new();
    for (path, file) in &source.files {
        let from = label(path, &file.module);
        for (module, names) in Paths::of(file).found {
            let Some((module, name)) = resolve(source, &module, &names) else { continue };
            let to_file = &source.modules[&module];
            let to = label(to_file, &source.files[to_file].module);
            if to != from {
                graph.entry(from.clone()).or_default().insert(to, name);
            }
        }
    }
    graph
}

/// The module in which a path ends, and the name that it has there. `None` if it leads out of the crate.
fn resolve(source: &Source, from: &Module, path: &[String]) -> Option<(Module, String)> {
    let mut module = from.clone();
    let mut rest = path;
    match path[0].as_str() {
        "crate" => module.clear(),
        "self" => {}
        "super" => {
            while rest.first().is_some_and(|name| name == "super") {
                module.pop()?;
                rest = &rest[1..];
            }
        }
        name => {
            module.push(name.to_owned());
            if !source.modules.contains_key(&module) {
                return None;
            }
        }
    }
    if path[0] != "super" {
        rest = &rest[1..];
    }
    while let Some(name) = rest.first() {
        module.push(name.clone());
        if !source.modules.contains_key(&module) {
            module.pop();
            break;
        }
        rest = &rest[1..];
    }
    let name = rest.first().cloned().unwrap_or_default();
    match module.is_empty() {
        true => Some(reexported(source, &name).unwrap_or((module, name))),
        false => Some((module, name)),
    }
}

/// Where a name comes from that lib.rs passes on.
fn reexported(source: &Source, name: &str) -> Option<(Module, String)> {
    let root = Paths::of(&source.files["lib.rs"]);
    let from = root.found.iter().find(|(_, path)| path.last().is_some_and(|last| last == name))?;
    let (module, name) = resolve(source, &from.0, &from.1)?;
    (!module.is_empty()).then_some((module, name))
}

/// The sets of files that all reach each other, with the shortest way around in each.
fn circles(graph: &Graph) -> Vec<Circle> {
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for start in graph.keys() {
        let Some(shortest) = around(graph, start) else { continue };
        if !seen.insert(start.clone()) {
            continue;
        }
        let files: BTreeSet<String> = reached(graph, start)
            .into_iter()
            .filter(|file| reached(graph, file).contains(start))
            .collect();
        seen.extend(files.iter().cloned());
        circles.push(Circle { files, shortest });
    }
    circles
}

pub fn reached(graph: &Graph, start: &str) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut left = vec![start];
    while let Some(file) = left.pop() {
        for to in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.clone()) {
                left.push(to);
            }
        }
    }
    reached
}

/// The shortest way from a file back to itself.
fn around(graph: &Graph, start: &str) -> Option<String> {
    let mut ways = VecDeque::from([(start.to_owned(), start.to_owned())]);
    let mut seen = BTreeSet::new();
    while let Some((file, way)) = ways.pop_front() {
        for (to, name) in graph.get(&file).into_iter().flatten() {
            let way = format!("{way} -({name})-> {to}");
            if to == start {
                return Some(way);
            }
            if seen.insert(to.clone()) {
                ways.push_back((to.clone(), way));
            }
        }
    }
    None
}
