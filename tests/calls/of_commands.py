"""Calls that users get wrong, of settings of a run."""

from __future__ import annotations

OF_COMMANDS: dict[str, list[tuple[str, str, str]]] = {
    "Settings out of range": [
        (
            "training.Settings(model='best')",
            "ValueError",
            "model must be 'sage', 'gcn', 'gin', 'gat', 'gatv2', 'rgcn', 'hgt', 'typed', 'none' "
            "or 'module:factory', got 'best'",
        ),
        ("training.Settings(model='nowhere:')", "ValueError", "model must be"),
        (
            "training.Settings(sampler='best')",
            "ValueError",
            "sampler must be 'neighbor', 'labor', 'bernoulli', 'fastgcn', 'ladies', "
            "'random-walk', 'saint', 'cluster', 'shadow' or 'cv', got 'best'",
        ),
        (
            "training.Settings(task='best')",
            "ValueError",
            "task must be 'auto', 'classification', 'multilabel', 'regression' or 'link', got "
            "'best'",
        ),
        (
            "training.Settings(direction='up')",
            "ValueError",
            "direction must be 'in', 'out' or 'both', got 'up'",
        ),
        (
            "training.Settings(fanouts=())",
            "ValueError",
            "fanouts must have one number per flow, got none",
        ),
        (
            "training.Settings(fanouts=(4, 0))",
            "ValueError",
            "fanouts[1] must be -1 (all neighbours) or at least 1, got 0",
        ),
        ("training.Settings(fanouts=(-2, 4))", "ValueError", "fanouts[0] must be -1"),
        ("training.Settings(batch_size=0)", "ValueError", "batch_size must be at least 1, got 0"),
        ("training.Settings(hidden=0)", "ValueError", "hidden must be at least 1, got 0"),
        ("training.Settings(epochs=0)", "ValueError", "epochs must be at least 1, got 0"),
        ("training.Settings(workers=-1)", "ValueError", "workers must be at least 0, got -1"),
        ("training.Settings(accumulate=0)", "ValueError", "accumulate must be at least 1, got 0"),
        (
            "training.Settings(dropout=1.0)",
            "ValueError",
            "dropout must be at least 0.0 and below 1, got 1.0",
        ),
        ("training.Settings(dropout=-0.1)", "ValueError", "dropout must be"),
        ("training.Settings(dropout=float('nan'))", "ValueError", "dropout must be"),
        ("training.Settings(lr=0.0)", "ValueError", "lr must be finite and above 0, got 0.0"),
        (
            "training.Settings(lr=float('inf'))",
            "ValueError",
            "lr must be finite and above 0, got inf",
        ),
        (
            "training.Settings(weight_decay=-1.0)",
            "ValueError",
            "weight_decay must be finite and at least 0.0, got -1.0",
        ),
        (
            "training.Settings(optimizer='best')",
            "ValueError",
            "optimizer must be 'adam', 'adamw', 'sgd', 'adagrad' or 'rmsprop', got 'best'",
        ),
        (
            "training.Settings(precision='int8')",
            "ValueError",
            "precision must be 'float32' or 'bf16', got 'int8'",
        ),
        (
            "training.Settings(sampler_options={'replce': True})",
            "ValueError",
            "sampler_options: 'replce' (= True) is no option of sampler 'neighbor' here; those "
            "are replace, prob, disjoint, edge_type, reuse",
        ),
        (
            "training.Settings(sampler_options={'seed': 1})",
            "ValueError",
            "sampler_options: 'seed' (= 1) is no option of sampler 'neighbor' here; those are "
            "replace, prob, disjoint, edge_type, reuse",
        ),
        (
            "training.Settings(sampler_options={'weight': 'w'})",
            "ValueError",
            "sampler_options: 'weight' (= 'w') is no option of sampler 'neighbor' here",
        ),
        (
            "training.Settings(sampler='saint', validate='sampled')",
            "ValueError",
            "validate 'sampled' does not go with sampler 'saint': its batches have all nodes of a "
            "subgraph",
        ),
        (
            "training.Settings(sampler='shadow', fanouts=(4, 3))",
            "ValueError",
            "fanouts must be one number, repeated for every layer, with sampler 'shadow'; got [4, "
            "3]",
        ),
        (
            "training.Settings(sampler='cv', fanouts=(4,))",
            "ValueError",
            "fanouts must have two numbers or more with sampler 'cv': the sums of the first layer "
            "are exact, so a single layer has no history; got [4]",
        ),
        (
            "training.Settings(sampler='cv', model='gat')",
            "ValueError",
            "sampler 'cv' does not go with model 'gat': it needs a model with a history, sage or "
            "gcn",
        ),
        (
            "training.Settings(sampler='cv', norm='batch')",
            "ValueError",
            "norm 'batch' does not go with sampler 'cv': models with a history have none",
        ),
        (
            "training.Settings(sampler='cv', residual=True)",
            "ValueError",
            "residual True does not go with sampler 'cv': models with a history have none",
        ),
        (
            "training.Settings(sampler='cv', storage='file')",
            "ValueError",
            "storage 'file' does not go with sampler 'cv': it reads the features of all nodes; "
            "take storage 'memory'",
        ),
        (
            "training.Settings(storage='disk')",
            "ValueError",
            "storage must be 'memory', 'file', 'cached', 'lookahead' or 'partitions', got 'disk'",
        ),
        ("training.Settings(memory='2')", "ValueError", "memory must be a number and a unit"),
        ("training.Settings(memory='0 GB')", "ValueError", "memory must be at least 1"),
        ("training.Settings(memory='two GB')", "ValueError", "memory must be a number and a unit"),
    ],
    "Settings of another type": [
        (
            "training.Settings(fanouts=5)",
            "TypeError",
            "fanouts must be a list with one number per flow, as in [10, 25], or a dict of them "
            "by relation, got int 5",
        ),
        ("training.Settings(hidden=2.5)", "TypeError", "hidden must be an integer, got float 2.5"),
        ("training.Settings(seed=1.5)", "TypeError", "seed must be an integer, got float 1.5"),
        ("training.Settings(epochs=True)", "TypeError", "epochs must be an integer, got bool True"),
        (
            "training.Settings(dropout='0.1')",
            "TypeError",
            "dropout must be a number, got str '0.1'",
        ),
        ("training.Settings(residual=1)", "TypeError", "residual must be True or False, got int 1"),
        ("training.Settings(metric=3)", "TypeError", "metric must be a string, got int 3"),
        (
            "training.Settings(sampler_options=[1])",
            "TypeError",
            "sampler_options must be a table of arguments by name, got list [1]",
        ),
        ("training.Settings(lr=True)", "TypeError", "lr must be a number, got bool True"),
        (
            "training.Settings(memory=1073741824)",
            "TypeError",
            "memory must be a string such as '2 GB', got int 1073741824",
        ),
        (
            "training.Settings(partitions=folder)",
            "TypeError",
            "partitions must be a string, the path of a folder, got PosixPath",
        ),
    ],
    "Settings that a run does not read, and names": [
        (
            "training.Settings(margin=9)",
            "ValueError",
            "margin (= 9) is read with task 'link', and this run has task 'auto'; leave it out",
        ),
        (
            "training.Settings(margin=1.0)",
            "ValueError",
            "margin (= 1.0) is read with task 'link', and this run has task 'auto'; leave it out",
        ),
        (
            "training.Settings(link={'margin': 9, 'decoder': 'dot'})",
            "ValueError",
            "margin (= 9) is read with task 'link', and this run has task 'auto'; leave it out",
        ),
        (
            "training.Settings(task='link', margin=9)",
            "ValueError",
            "margin (= 9) is read with link_loss 'margin' or 'self-adversarial' and the loss of "
            "the settings, and this run has link_loss 'softmax'; leave it out",
        ),
        (
            "training.Settings(task='link', link_loss='margin', temperature=2)",
            "ValueError",
            "temperature (= 2) is read with link_loss 'self-adversarial' and the loss of the "
            "settings, and this run has link_loss 'margin'; leave it out",
        ),
        (
            "training.Settings(task='link', label_smoothing=0.3)",
            "ValueError",
            "label_smoothing (= 0.3) is read with task 'auto' or 'classification' and the loss of "
            "the settings, or with task 'link' and link_loss 'one-vs-all' or 'k-vs-all', and this "
            "run has task 'link' and link_loss 'softmax'; leave it out",
        ),
        (
            "training.Settings(task='link', class_weights='balanced')",
            "ValueError",
            "class_weights (= 'balanced') is read with task 'auto' or 'classification', and this "
            "run has task 'link'; leave it out",
        ),
        (
            "training.Settings(task='link', decoder='dot', n3=0.1)",
            "ValueError",
            "n3 (= 0.1) is read with decoder 'distmult' or 'complex', and this run has decoder "
            "'dot'; leave it out",
        ),
        (
            "training.Settings(order='beta')",
            "ValueError",
            "order (= 'beta') is read with storage 'partitions', and this run has storage 'memory'",
        ),
        (
            "training.Settings(memory='2 GB')",
            "ValueError",
            "memory (= '2 GB') is read with storage other than 'memory' and 'file', or with "
            "storage 'file' and the whole graph in every process, and this run has storage "
            "'memory'; leave it out",
        ),
        (
            "training.Settings(model='none')",
            "ValueError",
            "model 'none' does not go with task 'auto': it stands for rows of nodes",
        ),
        (
            "training.Settings(hiden=3)",
            "ValueError",
            "there is no setting 'hiden' (= 3); did you mean hidden?",
        ),
        (
            "training.Settings(link={'loss_': 'margin'})",
            "ValueError",
            "there is no setting 'link.loss_' (= 'margin'); did you mean link.loss?",
        ),
        ("training.Settings(link=3)", "ValueError", "there is no setting 'link'"),
    ],
    "Settings that facts of the data exclude": [
        (
            "training.Settings(share='owned').check(graph='the whole graph in every process')",
            "ValueError",
            "share (= 'owned') is read with a part of the graph in every process, and this run "
            "has the whole graph in every process; leave it out",
        ),
        (
            "training.Settings(hidden=9).check(model='of your own', types='one type of nodes and "
            "edges')",
            "ValueError",
            "hidden (= 9) is read with model other than 'none' and 'of your own', or with model "
            "'of your own' and several node types, and this run has model 'of your own' and one "
            "type of nodes and edges; leave it out",
        ),
        ("training.Settings(dropout=0.1).check(model='of your own')", "ValueError", "dropout"),
        (
            "training.Settings(lr=0.1).check(optimizer='of your own')",
            "ValueError",
            "lr (= 0.1) is read with optimizer other than 'of your own', and this run has "
            "optimizer 'of your own'; leave it out",
        ),
        (
            "training.Settings(warmup=1.0).check(schedule='of your own')",
            "ValueError",
            "warmup (= 1.0) is read with schedule other than 'of your own', and this run has "
            "schedule 'of your own'; leave it out",
        ),
        (
            "training.Settings(label_smoothing=0.1).check(loss='a loss of your own', "
            "task='classification')",
            "ValueError",
            "label_smoothing (= 0.1) is read with task 'auto' or 'classification' and the loss of "
            "the settings, or with task 'link' and link_loss 'one-vs-all' or 'k-vs-all', and this "
            "run has task 'classification' and a loss of your own and link_loss 'softmax'; leave "
            "it out",
        ),
        (
            "training.Settings(class_weights='balanced').check(loss='a loss of your own')",
            "ValueError",
            "'balanced' does not go with a loss of your own",
        ),
        (
            "training.Settings(embedding=8).check(features='a data set with features')",
            "ValueError",
            "embedding (= 8) is read with inputs 'embedding' or 'both', or with inputs 'auto' and "
            "a data set without features or a data set with features of some node types, or with "
            "task 'link' and model other than 'none', and this run has inputs 'auto' and a data "
            "set with features and task 'auto' and model 'sage'; leave it out",
        ),
        (
            "training.Settings(label_smoothing=0.1).check(task='regression')",
            "ValueError",
            "label_smoothing (= 0.1) is read with task 'auto' or 'classification' and the loss of "
            "the settings, or with task 'link' and link_loss 'one-vs-all' or 'k-vs-all', and this "
            "run has task 'regression' and link_loss 'softmax'; leave it out",
        ),
        (
            "training.Settings(storage='lookahead').check(graph='a part of the graph in every "
            "process')",
            "ValueError",
            "storage 'lookahead' does not go with a part of the graph in every process: rows that "
            "processes hold are fetched by all together, and their plans differ; take storage "
            "'cached'",
        ),
        (
            "training.Settings(sampler='cv', model='gcn').check(graph='a part of the graph in "
            "every process')",
            "ValueError",
            "sampler 'cv' does not go with model 'gcn' and a part of the graph in every process: "
            "its sums have self-loops, which parts have not; take model 'sage'",
        ),
        (
            "training.Settings(sampler='cv').check(processes='several processes', graph='the "
            "whole graph in every process')",
            "ValueError",
            "sampler 'cv' does not go with several processes and the whole graph in every "
            "process: each process would write the history for its own share only; give each a "
            "part of the graph, and so of the history: nodeflow partition --for processes",
        ),
    ],
}
