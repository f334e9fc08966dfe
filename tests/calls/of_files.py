"""Files that readers and graph folders refuse, and wrong calls of rows in files and learned rows."""

from __future__ import annotations

_VALUES: dict[str, dict[str, str]] = {
    "Files of edges for a graph folder": {
        "built({'a.csv': 'src,dst\\n0,1\\n1,2\\n2,0\\nx,1\\n'})": (
            "a.csv, line 5: src must be an integer from 0, got 'x'"
        ),
        "built({'a.csv': '0,1,3\\n\\n1,2\\n'})": (
            "a.csv, line 3: expected 3 columns (src, dst, c2), got 2"
        ),
        "built({'a.csv': '0,1,3\\n1,2,red\\n'})": (
            "a.csv, line 2: column 'c2' must hold numbers, got 'red'"
        ),
        "built({'a.csv': '0,1\\n1,2\\n2,0\\n3,9\\n'}, num_nodes=9)": (
            "below num_nodes, 9, got '9'"
        ),
        "built({'a.csv': '0,1\\n', 'b.csv': '0,1\\n5\\n'})": "b.csv, line 2: expected 2 columns",
        "built({'a.csv': '0,1\\n', 'b.csv': '0,1,2\\n'})": (
            "b.csv must have the columns of the first file"
        ),
        ("built({'a.csv': 'src,dst,w\\n0,1,2\\n', 'b.csv': 'src,dst,v\\n0,1,2\\n'})"): (
            "b.csv must have"
        ),
        "built({'a.csv': ''})": "a.csv has no edges; pass num_nodes",
        "built({'a.csv': '0,1\\n', 'b.csv': '# none\\n'})": "b.csv has no edges",
        "built({'a.csv': 'a,b\\n', 'b.csv': '\\n'}, named=True)": (
            "b.csv has no edges; leave it out"
        ),
        "built({'a.csv': 'a,b\\nc,d,1\\n'}, named=True)": "a.csv, line 2: expected 2 columns",
        "built({'a.csv': 'a,b\\nc, \\n'}, named=True)": "a.csv, line 2: the name of dst is empty",
        "built({'a.csv': 'a,b,1\\nc,d,x\\n'}, named=True)": (
            "a.csv, line 2: column 'c2' must hold numbers, got 'x'"
        ),
        "built({'a.csv': 'a,b\\n'}, named=True, num_nodes=3)": "num_nodes cannot be given",
        "built({'a.csv': '0,1\\n'}, columns=('src', 'to'))": "columns must hold 'src', 'dst'",
        "built({'a.csv': '0,1\\n'}, delimiter='')": "delimiter must be text such as",
        "built({'a.csv': '0,1\\n'}, memory='much')": "memory must be a number and a unit",
        "built({'a.csv': '0,1\\n'}, memory=1000)": (
            "memory must be at least 21 MB for 2 nodes and 1 edges, got 1000 bytes"
        ),
        ("built({'a.csv': '0,1\\n'}, ndata={'x': torch.ones(3)}, num_nodes=2)"): (
            "column 'x' must have 2 rows"
        ),
        "built({'a.csv': '0,1\\n0,5\\n'}, ndata={'x': torch.ones(3)})": (
            "below num_nodes, 3, got '5'"
        ),
        "built({'a.csv': '0,1\\n'}, edata={'x': torch.ones(3)})": "column 'x' must have 1 rows",
        ("built({'a.csv': 'src,dst,w\\n0,1,2\\n'}, edata={'w': torch.ones(1)})"): (
            "edata must not name column 'w'"
        ),
        "built({'a.csv': '0,1\\n'}, split={'dev': [0]})": (
            "split must have the parts train, val and test, got 'dev'"
        ),
        ("built({'a.csv': '0,1\\n'}, split={'train': [0], 'test': [1, 0]})"): (
            "split['test'] holds node 0"
        ),
        "built({'a.csv': '0,1\\n'}, split={'train': [0, 1, 0]})": "split['train'] holds node 0",
        "built({'a.txt.gz.csv': '0,1\\n', 'b.zip': 'x'})": "edges must be files .csv",
        "of_arrays({'wide': np.zeros((2, 5), int)})": (
            "must hold integers [edges, 2], got int64 [2, 5]; save edge_index"
        ),
        "of_arrays({'floats': np.zeros((5, 2))})": "must hold integers",
        "of_arrays({'turned': np.zeros((2, 5), int).T})": "Fortran order",
        "of_arrays({'negative': [[0, 1], [1, -2]]})": (
            "negative.npy, row 1: dst must be an integer from 0, got -2"
        ),
        "of_arrays({'short': np.arange(3)})": "must hold integers [edges, 2], got int64 [3]",
        (
            "of_arrays({'e': [[0, 1]], 'objects': np.array([{}, 1], object)}, 'e', ndata='objects')"
        ): ("not numbers"),
        "of_arrays({'e': [[0, 1]], 'one': 3.0}, 'e', ndata='one')": (
            "one.npy must have one row per node or edge, got a single number"
        ),
        "of_arrays({'e': [[0, 1]]}, named=True)": "e.npy holds numbers, but named=True says",
        "built({'cut.npy': b'no array'})": "cut.npy must be a .npy file of edges",
        "datasets.build_graph([], folder)": "one file at least",
    },
    "Lists of edges": {
        "listed('# 1\\n0 1\\n', comments=None)": "line 1: src must be an integer from 0, got '#'",
        "listed('0 1\\n', delimiter='')": "delimiter must be text such as",
        "listed('0 1\\n', delimiter='::')": "line 1: expected 2 columns",
        "listed('# nothing\\n')": "edges.txt has no edges; pass num_nodes",
        "listed('0 1\\n2 5\\n', num_nodes=5)": "and below num_nodes, 5, got '5'",
        "listed('0 1\\n', columns=('src', 'time'))": (
            "columns must hold 'src', 'dst' and further names"
        ),
        "listed('0 1\\n', columns=('src', 'dst', 'dst'))": (
            "columns must hold 'src', 'dst' and further names"
        ),
        "listed('0 1\\n', columns=())": "columns must hold 'src', 'dst' and further names",
        "listed('0 1 2\\n', columns=('src', 'dst'))": "line 1: expected 2 columns",
        "listed('a,b,c,c\\n0,1,2\\n', header=True)": (
            "line 1: the header must name two or more columns, each once"
        ),
        "listed('a\\n0,1,2\\n', header=True)": (
            "line 1: the header must name two or more columns, each once"
        ),
        "listed('# c\\n0 1\\n\\n1 2.0\\n')": "dst must be an integer from 0, got '2.0'",
        "listed('0,1\\n-1,2\\n')": "src must be an integer from 0, got '-1'",
        "listed('0 1\\nzero 2\\n')": "src must be an integer from 0, got 'zero'",
        "listed('0 1\\n1 99999999999999999999\\n')": (
            "dst must be an integer from 0, got '99999999999999999999'"
        ),
        "listed('0 1\\n1 nan\\n')": "dst must be an integer from 0, got 'nan'",
        "listed('0 1\\n1\\n')": "expected 2 columns (src, dst), got 1",
        "listed('0 1\\n1 2 3\\n')": "expected 2 columns (src, dst), got 3",
        "listed('0,1\\n,2\\n')": "src must be an integer from 0, got ''",
        "listed('from,to\\n0,1\\n')": "if the line names the columns, pass header=True",
        "listed('0,1,3\\n0,1,red\\n')": "column 'c2' must hold numbers, got 'red'",
        "listed('hello\\n', 'm.mtx')": "must be a sparse matrix in Matrix Market format",
        (
            "listed('%%MatrixMarket matrix coordinate pattern general\\n% a note\\n4 5 3\\n1 "
            "1\\n2 1\\n3 2\\n', 'm.mtx')"
        ): ("must hold a square"),
        (
            "listed('%%MatrixMarket matrix coordinate pattern general\\n% a note\\n4 4 4\\n1 "
            "1\\n2 1\\n3 2\\n', 'm.mtx')"
        ): ("may be cut short"),
        (
            "listed('%%MatrixMarket matrix coordinate pattern general\\n% a note\\n4 4 3\\n0 "
            "1\\n2 1\\n3 2\\n', 'm.mtx')"
        ): ("out of bounds"),
        (
            "listed('%%MatrixMarket matrix coordinate real general\\n% a note\\n4 4 3\\n1 1 0"
            ".5\\n2 1 inf\\n3 2 -1e400\\n', 'm.mtx')"
        ): ("line 6: '-1e400' is beyond the largest float64"),
        ("listed('%%MatrixMarket matrix array real general\\n1 1\\n3\\n', 'm.mtx')"): (
            "must hold a square sparse matrix"
        ),
        (
            "listed('%%MatrixMarket matrix coordinate real general\\n2 2 99999999999999\\n1 1"
            " 1\\n', 'm.mtx')"
        ): ("99,999,999,999,999 entries"),
        "listed('id,person,friend\\n1,2,3\\n', header=True)": (
            "and the ends of edges src and dst, source and target"
        ),
        "listed('weight,person,friend\\n1,2,3\\n', header=True)": (
            "and the ends of edges src and dst, source and target"
        ),
        "listed('w,x1,x2\\n3,4,5\\n', header=True)": "the ends of edges",
        "listed('start,end,w\\n3,4,5\\n', header=True)": "the ends of edges",
        "listed('x1,y2,w\\n3,4,5\\n', header=True)": "the ends of edges",
        "listed('k,l,h,t\\n3,4,5,6\\n', header=True)": (
            "must name two or more columns, each once, and the ends of edges"
        ),
        "listed('k,s,l,o\\n3,4,5,6\\n', header=True)": (
            "must name two or more columns, each once, and the ends of edges"
        ),
        "listed('# src,dst\\n0,1\\n1,2\\n', header=True)": (
            "line 2: header=True, but ['0', '1'] is an edge"
        ),
        "listed('0,1,2139\\n1,2,01001\\n')": (
            "line 2: column 'c2' must hold numbers, got '01001'; skip it"
        ),
        "read({'edges.csv': '% bip\\nsrc,dst\\n1,1\\n'})": "line 1 says 'bip'",
        "listed('% sym weighted\\n1 2 1 99\\n2 3\\n', 'out.konect')": (
            "line 3: expected 4 columns (src, dst, c2, c3), got 2; name all columns of the file"
        ),
        "listed('ann,bob\\ncid,dan\\n')": "build_graph(named=True) and read_folder take names",
    },
    "Folders of text": {
        "read({'edges.csv': ''})": "edges.csv is empty; its first line must name its columns",
        "read({'edges.csv': '\\n \\n'})": "edges.csv is empty",
        "read({'edges.csv': 'src\\na\\n'})": "line must name two or more columns",
        "read({'edges.csv': 'src;dst\\na;b\\n'})": "with commas between: ['src;dst']",
        "read({'edges.csv': '0,1\\n1,2\\n'})": (
            "['0', '1'] reads like an edge; put the line src,dst before"
        ),
        "read({'edges.csv': 'ann,bob\\nann,cid\\n'})": "['ann', 'bob'] reads like an edge",
        "read({'edges.csv': 'a,b,src\\n0,1,2\\n'})": (
            "must name two or more columns, each once, and the ends of edges src and dst"
        ),
        "read({'edges.csv': 'src,dst,,\\n0,1,2,3\\n'})": (
            "line 1: every column needs a title of its own, got ['src', 'dst', ''"
        ),
        "read({'edges.csv': 'src,dst,w,w\\n0,1,2,3\\n'})": (
            "line 1: every column needs a title of its own"
        ),
        "read({'edges.csv': 'src,dst\\na,b\\n\\nc\\n'})": (
            "line 4: expected 2 columns (src, dst), got 1: ['c']"
        ),
        ("read({'edges.csv': 'src,dst\\n\"a\\nb\",c\\na,\"b, c\",d\\n'})"): (
            "line 4: expected 2 columns"
        ),
        "read({'edges.csv': 'src,dst\\na,\"b\\n'})": (
            "edges.csv, line 2: unexpected end of data; a quoted entry may have no end"
        ),
        "read({'edges.csv': b'src,dst\\n\\xff,b\\n'})": (
            "edges.csv, line 2 has bytes that are no UTF-8; it must be text"
        ),
        "read({'edges.csv.gz': b'src,dst\\n'})": "edges.csv.gz must be a text file of columns",
        "read({'edges.csv': 'src,dst,w\\na,b,1\\nb,,2\\n'})": (
            "line 3: the entry of column 'dst' is empty"
        ),
        "read({'edges.csv': 'src,dst,w\\na,b,1\\nb,c,\\n'})": (
            "line 3: the entry of column 'w' is empty"
        ),
        "read({'edges.csv': 'src,dst\\n0,1\\n1,-1\\n'})": (
            "line 3: dst must be a name, or an integer from 0, got '-1'"
        ),
        ("read({'edges.csv': 'src,dst,split\\na,b,train\\nb,c,later\\n'})"): (
            "line 3: column 'split' must hold train"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'edges.tsv': 'src,dst\\na,b\\nb,c\\n'})"): (
            "must hold one of edges.csv and edges.tsv, got both"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'train.tsv': 'a\\tr\\tb\\n'})"): (
            "must hold one of edges.csv and train.tsv, got both"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\na\\nb\\n'})"): (
            "edges.csv, line 3: dst must be a node of"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\n0\\n1\\n'})"): (
            "edges.csv, line 2: src must be a node of"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\na\\nb\\nc\\nb\\n'})"): (
            "nodes.csv, line 5: node 'b' is there twice"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\n1\\n2\\n1\\n'})"): (
            "nodes.csv, line 4: node '1' is there twice"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\n1\\n2\\n2.0\\n'})"): (
            "nodes.csv, line 4: 2.0 and 2 are one number but two words"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id\\n0\\n-3\\n'})"): (
            "nodes.csv, line 3: no node can be '-3'"
        ),
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': ''})"): "nodes.csv is empty",
        ("read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'label,id\\n0,a\\n'})"): (
            "must begin with a column of ids or names of nodes, got ['label', 'id']"
        ),
        (
            "read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id,label,split,x\\na,"
            "0,train,1\\nb,1,val,2\\nc,1,test,3\\nd,0,later,4\\n'})"
        ): ("line 5: column 'split' must hold train"),
        "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,x\\n0,2.5\\n1,+1.5\\n'})": (
            "line 3: column 'x' must hold numbers, got '+1.5'"
        ),
        "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,x\\n0,1\\n1,true\\n'})": (
            "line 3: column 'x' must hold numbers, got 'true'"
        ),
        "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,label\\n0,2.5\\n1,+1.5\\n'})": (
            "line 3: column 'label' must hold numbers, got '+1.5'"
        ),
        (
            "read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id,label,split,x\\na,"
            "0,train,1\\nb,1,val,2\\nc,1,test,3\\nd,0,test,old\\n'})"
        ): ("line 5: column 'x' must hold numbers, got 'old';"),
        (
            "read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id,label,split,x\\na,"
            "0,train,1\\nb,1,val,2\\nc,1,test,3\\nd,-2,test,4\\n'})"
        ): ("line 5: label must be a class from 0, in 64 bits, or -1 or empty"),
        (
            "read({'edges.csv': 'src,dst\\na,b\\nb,c\\n', 'nodes.csv': 'id,label,split,x\\na,"
            "0,train,1\\nb,1,val,2\\nc,1,test,3\\nd,,train,4\\n'})"
        ): ("nodes.csv holds node 'd' for training, which has no label"),
        "read({'train.tsv': 'source\\tedge\\ttarget\\na\\tr\\tb\\n'})": (
            "reads like titles; take it out"
        ),
        ("read({'train.tsv': 'a\\tr\\tb\\n', 'test.tsv': 'from\\tr\\tto\\n'})"): (
            "put a line head, relation"
        ),
        "read({'train.tsv': 'h\\tr\\tt\\na\\tr\\tb\\n'})": "reads like titles; take it out",
        "read({'train.tsv': 'x\\trelation\\ty\\na\\tr\\tb\\n'})": (
            "reads like titles; take it out"
        ),
        "read({'train.tsv': 'a\\tb\\n'})": (
            "train.tsv, line 1: expected 3 columns (src, relation, dst), got 2"
        ),
        ("read({'train.tsv': 'a\\tr\\tb\\n', 'test.tsv': 'a\\tr\\tb\\na\\t\\tb\\n'})"): (
            "'relation' is empty"
        ),
        ("read({'train.tsv': '0\\t0\\t1\\n', 'test.tsv': '\\n1\\t0\\t-1\\n'})"): (
            "test.tsv, line 2: dst must be a name"
        ),
        ("read({'train.tsv': '0\\t0\\t1\\n1\\t0\\t-1\\n', 'test.tsv': '0\\t0\\t1\\n'})"): (
            "train.tsv, line 2: dst must be"
        ),
        ("read({'train.tsv': 'a\\tr\\tb\\n', 'val.tsv': 'a\\tr\\tb\\n', 'valid.txt': ''})"): (
            "must hold one of valid.txt and val.tsv, got both"
        ),
        "read({'edges.csv': 'ann,bob\\ncid,dan\\neve,fay\\n'})": (
            "['ann', 'bob'] reads like an edge; put the line src,dst before"
        ),
        "read({'edges.csv': 'ann,bob,2018\\ncid,dan,2019\\n'})": "reads like an edge",
        ("read({'edges.csv': 'ann,bob\\nbob,cid\\n', 'nodes.csv': 'name\\nann\\nbob\\ncid\\n'})"): (
            "reads like an edge"
        ),
        "read({'train.tsv': 'a\\t1\\tb\\na\\t1.0\\tb\\n'})": (
            "train.tsv, line 2: 1.0 and 1 are one number but two words"
        ),
        ("read({'train.tsv': 'a\\tr\\tb\\n', 'nodes.tsv': '# id\\tx\\na\\t1\\nb\\t2\\n'})"): (
            "line 1 begins with '#', but has columns; remove the mark"
        ),
        "built({'e.tsv': 'ann\\tbob\\n#tag\\tann\\n'}, named=True)": "or pass comments=None",
        "read({'train.tsv': 'a_col\\tr_col\\tb_col\\na\\tr\\tb\\n'})": (
            "line 1: ['a_col', 'r_col', 'b_col'] reads like titles; take it out"
        ),
        (
            "read({'train.tsv': 'a\\tr\\tb\\n', 'test.txt': 'a_col\\tr_col\\tb_col\\na\\tr\\t"
            "b\\n'})"
        ): ("line 1: ['a_col', 'r_col', 'b_col'] reads like titles; take it out"),
        (
            "read({'edges.csv': 'user,item_id,timestamp,state_label,features\\n0,0,0.0,0,-0.1"
            ",0.2\\n'})"
        ): ("line 2: expected 5 columns"),
        "read({'train.txt': '2\\n0 1 0\\n'})": (
            "train.txt, line 1: it says that there are 2 triples, got 1"
        ),
        ("read({'train2id.txt': '1\\n0 1 0\\n', 'test2id.txt': '0\\t2\\t1\\n'})"): (
            "test2id.txt, line 1: expected the number of triples"
        ),
        ("read({'edges.csv': 'Source,Target,Label\\na,b,one\\nb,c,\\n'})"): (
            "line 3: the entry of column 'Label' is empty; a title that begins with _, such a"
            "s _Label"
        ),
        ("read({'edges.csv': 'src,dst,when\\na,b,2021-03-01\\nb,c,unknown\\n'})"): (
            "edges.csv, line 3: 'unknown' is no date, but the column holds dates"
        ),
        ("built({'e.csv': 'src,dst,when\\na,b,2021-03-01\\nb,c,unknown\\n'}, named=True)"): (
            "line 3: column 'when' must hold dates, got 'unknown'"
        ),
        "read({'edges.csv': 'src,dst,when\\na,b,2021-13-45\\n'})": (
            "line 2: '2021-13-45' looks like a time"
        ),
        (
            "read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'id,label,feat\\na,x,2021-03"
            "-01\\nb,y,2021-03-02\\n'})"
        ): ("column 'feat' holds dates; give it a title such as time"),
        ("read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'n,x\\na,007\\nb,7\\n'})"): (
            "nodes.csv, line 2: column 'x' must hold numbers, got '007'"
        ),
        "read({'edges.csv': 'src,dst\\n1,2.0\\n2,3.0\\n3,1.0\\n'})": (
            "edges.csv, line 2: 2.0 and 2 are one number but two words; write both as 2"
        ),
        "built({'e.csv': 'src,dst\\n1,2.0\\n2,3.0\\n'}, named=True)": (
            "names of nodes: 2.0 and 2 are one number"
        ),
        ("read({'edges.csv': 'src,dst\\n0,3\\n6,1\\n', 'features.npy': np.eye(6)})"): (
            "edges.csv, line 3: src must be a number from 0 to 5, for a row of features"
        ),
        ("read({'edges.csv': 'src,dst\\nann,3\\n', 'features.npy': np.eye(6)})"): (
            "(a file nodes.csv may give names to the rows), got 'ann'"
        ),
        (
            "read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'id,label\\na,1\\nb,0\\n', '"
            "labels.npy': [0, 1]})"
        ): ("labels in nodes.csv or in labels.npy"),
        (
            "read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'id,x\\na,1\\nb,0\\n', 'feat"
            "ures.npy': np.ones((2, 1))})"
        ): ("features in nodes.csv or in features.npy"),
        (
            "read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'id,split\\na,train\\nb,val"
            "\\n', 'val.npy': [0]})"
        ): ("nodes.csv has a split in columns, so"),
        (
            "read({'edges.npz': {'src': [0], 'dst': [1], 'num_nodes': 3}, 'nodes.csv': 'name,"
            "label\\nann,0\\nbob,1\\n'})"
        ): ("nodes.csv must have 3 rows, one per node"),
        (
            "read({'edges.npz': {'src': [0], 'dst': [1], 'num_nodes': 3}, 'nodes.csv': 'name"
            "\\nann\\nbob\\n'})"
        ): ("nodes.csv must list 3 nodes, got 2"),
        "read({'edges.csv': 'src,dst\\n1000,3\\n1e3,3\\n'})": (
            "line 3: 1e3 and 1000 are one number but two words; write both as 1000"
        ),
        "read({'edges.csv': 'src,dst\\n2.,3\\n2,3\\n'})": (
            "line 2: 2. and 2 are one number but two words"
        ),
        ("read({'edges.csv': 'src,dst\\n0,3\\n1e-999999999999999999999,3\\n'})"): (
            "are one number but two words"
        ),
        "read({'edges.csv': 'src,dst\\n1,3\\nnan,3\\n'})": (
            "line 3: nan among numbers is a missing entry; leave the row out"
        ),
        "read({'edges.csv': 'src,dst\\n1.5,3\\nNaN,3\\n'})": (
            "line 3: NaN among numbers is a missing entry"
        ),
        "read({'edges.csv': 'src,dst\\n1,3\\n-nan,3\\n'})": (
            "line 3: -nan among numbers is a missing entry"
        ),
        "read({'edges.csv': 'src,dst\\n1,3\\nNA,3\\n'})": (
            "line 3: NA among numbers is a missing entry"
        ),
        "read({'edges.csv': 'src,dst\\nNone,3\\n7,3\\n'})": (
            "line 2: None among numbers is a missing entry"
        ),
    },
    "Labels and splits": {
        (
            'six({\'nodes.csv\': \'id,label\\n0,"0"\\n1,"1"\\n2,"NA"\\n3,"0"\\n4,"1"\\n5,"NA"'
            "\\n'})"
        ): ("looks like a missing entry"),
        (
            'six({\'nodes.csv\': \'id,label\\n0,"1.5"\\n1,"?"\\n2,"2"\\n3,"1.5"\\n4,"?"\\n5,"'
            "2\"\\n'})"
        ): ("looks like a missing entry"),
        (
            'six({\'nodes.csv\': \'id,label\\n0,"1,5"\\n1,"cat"\\n2,"dog"\\n3,"1,5"\\n4,"cat"'
            '\\n5,"dog"\\n\'})'
        ): ("looks like a number"),
        (
            'six({\'nodes.csv\': \'id,label\\n0,"1"\\n1,"None"\\n2,"2"\\n3,"1"\\n4,"None"\\n5'
            ',"2"\\n\'})'
        ): ("looks like a missing entry"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,label\\n0,1\\n1,99"
            "9999999999999999999999999999\\n'})"
        ): ("line 3: '999999999999999999999999999999'"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,label\\n0,1\\n1,1e"
            "30\\n'})"
        ): ("line 3: label must be a class from 0, in 64 bits"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,label\\n0,0.5\\n1,"
            "1e39\\n'})"
        ): ("column 'label' holds 1e+39 in entry 1, beyond the largest float32"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n1,0\\n', 'nodes.csv': 'id,label\\n0,1\\n1,1e"
            "400\\n'})"
        ): ("beyond 64 bits"),
        "columns(y=torch.tensor([1, -1, 1, 1, -1, -1]))": (
            "holds 1 and -1, which is no label: write two classes as 1 and 0"
        ),
        "columns(y=torch.tensor([[1, -1]] * 6))": "holds 1 and -1, which is no label",
        "columns(y=torch.tensor([0, 1, 255, 1, 0, 1]).byte())": (
            "holds 255 as an unsigned byte, which -1 becomes there"
        ),
        "columns(y=torch.tensor([[0, 255]] * 6).byte())": (
            "holds 255 as an unsigned byte, which -1 becomes there"
        ),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n1,2\\n', 'nodes.csv': 'age,id,label\\n2,0,1"
            "\\n0,1,0\\n1,2,1\\n'})"
        ): ("must begin with a column of ids or names of nodes"),
        ("read({'edges.csv': 'src,dst\\n0,1\\n', 'nodes.csv': 'fold,x\\n0,5\\n1,6\\n'})"): (
            "must begin with a column of ids or names of nodes, got ['fold', 'x']"
        ),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n', 'nodes.csv': 'id,label,split,fold\\n0,0,t"
            "rain,test\\n1,1,test,train\\n'})"
        ): ("nodes.csv: its first line names split, fold, which say a split twice"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n', 'nodes.csv': 'id,label,train_mask,test_ma"
            "sk\\n0,0,1,0\\n1,1,yes,0\\n'})"
        ): ("line 3: column 'train_mask' must hold true and false, or 1 and 0"),
        (
            "read({'edges.csv': 'src,dst\\n0,1\\n', 'nodes.csv': 'id,label,train_mask,test_ma"
            "sk\\n0,0,1,1\\n1,1,0,0\\n'})"
        ): ("train and test must not share nodes, but node 0 is in both"),
        ("six({'labels.npy': [0, 1] * 3, 'train_mask.npy': [True] * 6, 'val.npy': [1]})"): (
            "has a split in columns, so"
        ),
        (
            "six({'nodes.csv': 'id,train_mask\\n0,1\\n1,1\\n2,1\\n3,1\\n4,1\\n5,1\\n', 'label"
            "s.npy': [0, 1] * 3, 'train_mask.npy': [True] * 6})"
        ): ("nodes.csv has a split in columns, so"),
        (
            "read({'nodes.csv': 'id,label\\n3,0\\n1,1\\n', 'edges.npz': {'src': [1], 'dst': ["
            "3]}, 'train_nodes.npy': [0]})"
        ): ("train_nodes.npy has node 0, which"),
        ("six({'labels.npy': [0, 1] * 3, 'train.npy': [0], 'training.npy': [0]})"): (
            "got both; remove the one not meant"
        ),
        ("six({'labels.npy': [0, 1] * 3, 'train.npy': [0], 'train_idx.npy': [0]})"): (
            "got both; remove the one not meant"
        ),
        ("six({'labels.npy': [0, 1] * 3, 'train.npy': [0], 'idx_train.npy': [0]})"): (
            "got both; remove the one not meant"
        ),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), train_mask=torch.tensor([False, Fal"
            "se, True, False, True, False]), test_mask=torch.tensor([False, False, False, Fal"
            "se, True, False]))"
        ): ("train and test must not share nodes, but node 4 is in both"),
        ("columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), train_mask=torch.ones(6, 10).bool())"): (
            "column 'train_mask' must have one entry per node, got shape (6, 10); of several "
            "splits keep one"
        ),
        ("columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), train_mask=torch.arange(6))"): (
            "'train_mask' must be a mask, bool [nodes], got torch.int64 [6] with 2 for node 2"
        ),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), val=torch.tensor([0, float('nan'), "
            "1, 1, 1, 1]))"
        ): ("with nan for node 1"),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), val_mask=torch.tensor([False, True,"
            " False, False, False, False]), valid_mask=torch.tensor([False, True, False, Fals"
            "e, False, False]))"
        ): ("val_mask, valid_mask, which say"),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), split=torch.zeros(6).long(), train="
            "torch.tensor([False, True, False, False, False, False]))"
        ): ("which say its split twice"),
        ("columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), split=torch.arange(6))"): (
            "with 3 for node 3"
        ),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), split=torch.tensor([False, True, Fa"
            "lse, False, False, False]))"
        ): ("column 'split' must hold 0 (train)"),
        (
            "columns(y=torch.tensor([0, 1, 0, 1, -1, 1]), train_mask=torch.tensor([False, Fal"
            "se, False, False, True, False]))"
        ): ("holds node 4 for training, which has no label"),
    },
    "Folders of arrays": {
        "ringed({'labels.npy': [0, 1]})": "must have 8 rows, one per node, got shape (2,",
        "ringed({'labels.npy': [0, 1, 0, 1, -2, 1, 0, 1]})": (
            "labels from 0, or -1 for none, but node 4 has -2"
        ),
        "ringed({'labels.npy': np.zeros((8, 2, 1))})": "one number, or one row, per node, got",
        ("ringed({'labels.npy': np.array([{'pickled': True}, 2, 3], dtype=object)})"): (
            "holds pickled objects, which are never loaded"
        ),
        "ringed({'labels.npy': np.array(['a'] * 8)})": (
            "must hold integers, floats or bools, got dtype <U1"
        ),
        "ringed({'labels.npy': b''})": "may be cut short or of another format",
        "ringed({'labels.npz': scipy.sparse.csr_matrix(np.eye(8))})": (
            "got both; remove the one not meant"
        ),
        ("ringed({'features.npz': scipy.sparse.csr_matrix(np.eye(7, 3))})"): (
            "must have 8 rows, one per node, got shape (7,"
        ),
        "ringed({'features.npz': {'x': np.eye(8)}})": (
            "must be a sparse matrix as scipy.sparse.save_npz writes it"
        ),
        "ringed({'features.npz': b'PK\\x03\\x04 nothing more'})": (
            "may be cut short or of another format"
        ),
        "ringed({'features.npz': b'no archive at all'})": "it is no archive of arrays",
        ("ringed({'adjacency.npz': scipy.sparse.csr_matrix(np.eye(8, 9))})"): (
            "must be a square matrix"
        ),
        ("ringed({'adjacency.npz': scipy.sparse.csr_matrix(1j * np.eye(8))})"): "complex128",
        "ringed({'train.npy': [0, 8]})": "ids of nodes, from 0 to 7, but entry 1 is 8",
        "ringed({'val.npy': [-1]})": "ids of nodes, from 0 to 7, but entry 0 is -1",
        "ringed({'test.npy': [0.0]})": (
            "ids of nodes, from 0 to 7: integers in one dimension, got float64"
        ),
        "ringed({'test.npy': np.ones(8, dtype=bool)})": (
            "ids of a mask are numpy.flatnonzero(mask)"
        ),
        "ringed({'test.npy': [3, 1, 3]})": "holds node 3 2 times; keep it once",
        "ringed({'train.npy': [4]})": (
            "holds node 4 for training, which has no label; take it out"
        ),
        "ringed({'train.npy': [0, 1], 'test.npy': [2, 1]})": (
            "test.npy must not share nodes, but node 1 is"
        ),
        "ringed({'edges.npz': {'src': [0], 'dst': [1]}})": (
            "one of adjacency.npz and edges.npz, got both"
        ),
        ("ringed({'labels.npy': None, 'labels.npz': scipy.sparse.csr_matrix(2 * np.eye(8))})"): (
            "must hold zeros and ones, but (0, 0) is 2"
        ),
        "ringed({'features.npz': None, 'features.npy': np.zeros(8)})": (
            "features.npy must be an array of nodes x features"
        ),
        "ringed({'adjacency.npz': None, 'edges.npz': {'src': [0]}})": (
            "must hold the arrays src and dst, got src"
        ),
        ("ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [1, 2]}})"): (
            "array 'dst', must have 1 rows, one per edge"
        ),
        ("ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [1], 'time': 5}})"): (
            "array 'time', must have 1 rows, one per edge"
        ),
        ("ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [-1]}})"): (
            "array 'dst', must hold ids of nodes"
        ),
        ("ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [8]}})"): (
            "array 'dst', must hold ids of nodes, from 0 to 7, but entry 0 is 8"
        ),
        ("ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [1.5]}})"): (
            "array 'dst', must hold ids of nodes, from 0 to 7: integers"
        ),
        (
            "ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [1], 'num_nodes'"
            ": 1.5}})"
        ): ("array 'num_nodes', must be one integer"),
        (
            "ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': [1], 'num_nodes': 9}})"
        ): ("must have 9 rows, one per node, got shape (8,"),
        (
            "ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': np.array([2 ** 6"
            "4 - 1], dtype=np.uint64)}})"
        ): ("beyond the largest 64-bit"),
        (
            "ringed({'adjacency.npz': None, 'edges.npz': {'src': [0], 'dst': np.array([{'pick"
            "led': True}, 2, 3], dtype=object)}})"
        ): ("pickled"),
        (
            "read({'edges.npz': {'src': [0, 1], 'dst': [1, 0], 'relation': [0, 3], 'split': ["
            "0, 1], 'num_relations': 3}})"
        ): ("array 'relation', must hold numbers from 0 to 2, but entry 1 is 3"),
        (
            "read({'edges.npz': {'src': [0, 1], 'dst': [1, 0], 'relation': [0.0, 1.0], 'split"
            "': [0, 1], 'num_relations': 3}})"
        ): ("array 'relation', must hold numbers from 0 to 2: integers"),
        (
            "read({'edges.npz': {'src': [0, 1], 'dst': [1, 0], 'relation': [0, 1], 'split': ["
            "0, -1], 'num_relations': 3}})"
        ): ("array 'split', must hold numbers from 0 to 2, but entry 1 is -1"),
        (
            "read({'edges.npz': {'src': [0, 1], 'dst': [1, 0], 'relation': [0, 1], 'split': ["
            "0, 1], 'num_relations': [1, 2]}})"
        ): ("array 'num_relations', must be one integer"),
        "ringed({'features.npz': scipy.sparse.coo_array(np.ones(8))})": "it has the shape (8,)",
        (
            "ringed({'labels.npy': None, 'labels.npz': scipy.sparse.csr_matrix((8, 2**50), dt"
            "ype=np.float32)})"
        ): ("labels.npz: a dense matrix [8, 1125899906842624] of labels"),
        "ringed({'labels.npy': np.full(8, 1e300)})": (
            "holds 1e+300 in entry 0, beyond the largest float32"
        ),
    },
    "Folders of OGB": {
        "ogb({'raw/edge': '0,1\\n1,2.0\\n3,0\\n'})": (
            "edge.csv.gz, line 2: dst must be an integer from 0"
        ),
        "ogb({'raw/edge': '0,1\\n1,x\\n3,0\\n'})": "edge.csv.gz, line 2: dst must be",
        "ogb({'raw/edge': '0,1\\n1,4\\n3,0\\n'})": (
            "line 2: dst must be an integer from 0 and below num_nodes, 4, got '4'"
        ),
        "ogb({'raw/edge': '0,1\\n1,-2\\n3,0\\n'})": (
            "line 2: dst must be an integer from 0 and below num_nodes, 4, got '-2'"
        ),
        "ogb({'raw/edge': '0,1\\n1\\n3,0\\n'})": "edge.csv.gz, line 2: expected 2 columns",
        "ogb({'raw/edge': '0\\n1\\n3\\n'})": (
            "edge.csv.gz, line 1: expected 2 columns (src, dst), got 1"
        ),
        "ogb({'raw/edge': '0,1\\n'})": "edge.csv.gz must have 3 rows,",
        "ogb({'raw/edge-feat': '1\\n'})": (
            "edge-feat.csv.gz must have 3 rows, one per edge, got shape"
        ),
        "ogb({'raw/node-feat': '1\\n2\\n3\\n'})": (
            "node-feat.csv.gz must have 4 rows, one per node, got shape"
        ),
        "ogb({'raw/node-feat': '1\\n2\\n3\\nred\\n'})": (
            "node-feat.csv.gz, line 4: expected numbers, got 'red'"
        ),
        ("ogb({'raw/node-feat': '1,2\\n16777216,3\\n0,16777217\\n1,1\\n'})"): (
            "line 3, holds 16777217.0 in entry 1, which float32"
        ),
        "ogb({'raw/node-label': '0\\n1\\n'})": (
            "node-label.csv.gz must have 4 rows, one per node, got shape"
        ),
        "ogb({'raw/node-label': '0\\n1\\n0.5\\n0\\n'})": (
            "labels from 0, or nan for none, but node 2 has 0.5"
        ),
        "ogb({'raw/node-label': '0\\n1\\n-3\\n0\\n'})": "but node 2 has -3",
        "ogb({'raw/node-label': '0\\n1\\ninf\\n0\\n'})": "but node 2 has inf",
        "ogb({'raw/node_year': '2001\\n'})": (
            "node_year.csv.gz must have 4 rows, one per node, got shape"
        ),
        "ogb({'raw/num-node-list': '2\\n2\\n'})": "num-node-list.csv.gz must hold one number",
        "ogb({'split/time/test': '4\\n'})": (
            "test.csv.gz must hold ids of nodes, from 0 to 3, but entry 0 is 4"
        ),
        "ogb({'split/time/test': '-1\\n'})": "but entry 0 is -1",
        "ogb({'split/time/test': '1\\n'})": "test.csv.gz must not share nodes, but node 1",
    },
    "Data sets": {
        ("datasets.Dataset('a', graph, num_classes=4, class_names=('one',))"): (
            "class_names must be None or hold 4 names, got 1"
        ),
        "datasets.Dataset('a', graph, node_names=('one',))": (
            "node_names must be None or hold 20 names, got 1"
        ),
        "datasets.Dataset('a', graph, feature_names=('one',))": (
            "feature_names for 'node' must be None or hold 4 names, got 1"
        ),
        "datasets.Dataset('a', graph, category_names={'t': ('a',)})": (
            "category_names['t'] must hold at least 40 names, got 1"
        ),
        ("papers(label=torch.tensor([0, 1, 0, -1]), author={'y': torch.tensor([1, 0])})"): (
            "nodes of several types have labels, author, paper: name one as the target"
        ),
        "papers(y=torch.arange(4), train_mask=torch.arange(4))": (
            "column 'train_mask' must be a mask, bool [nodes], got torch.int64 [4]"
        ),
        ("papers(y=torch.tensor([0, 1, 0, -1]), train_mask=torch.tensor([0, 0, 0, 1]))"): (
            "the split of 'paper' in data set 'd' holds node 5 for training, which has no"
        ),
        "papers(y=torch.tensor([0, -2, 0, 0]))": (
            "the labels of 'paper' in data set 'd' must hold labels from 0"
        ),
        "saved(label=torch.tensor([0, -3]))": "node 1 has -3",
        "saved(label=torch.eye(2).to_sparse_csr())": (
            "the labels in data set 'd' must have one number, or one row, per node"
        ),
        "saved(train=[0], label=torch.tensor([-1, 0]))": (
            "holds node 0 for training, which has no label"
        ),
    },
    "Caches and tiers": {
        "storage.Cached(feat, [1.0], 60)": "entry per row (20)",
        "storage.Cached(feat, [float('nan')] * 20, 5)": "heat[0]",
        "storage.Cached(feat, heat, -1)": "memory",
        "storage.Tiered([feat, feat.to_sparse_csr()])": "sparse_csr",
        "storage.Cached(feat, heat, 60).fetch([6], feat)": "out must be",
        "storage.Tiered([feat, feat[:, :2]])": "tiers[1]",
        "storage.Tiered([feat], range(19))": "each of the 20 rows once",
        "storage.Tiered([feat], [0] * 20)": "each of the 20 rows once",
        "storage.Tiered.split(feat, heat, [('memory', 1.5)])": "share from 0 to 1",
        "storage.Tiered.split(feat, heat, [('rows.csv', None)])": "path of a .npy file",
        ("storage.Tiered.split(feat, heat, [('memory', 160), ('cpu', '80 B')])"): (
            "5 rows have no place"
        ),
        "storage.Cached(feat, heat, '11 B')": "a row takes 16 bytes",
        "storage.reach_heat(graph, [1], [-3], 1)": "fanout",
        "storage.degree_heat(graph, 'up')": "direction",
    },
    "Rows in files": {
        "storage.open(folder / 'x.txt')": "pass shape and dtype",
        "opened({'x.npy': feat}, threads=0)": "threads",
        ("opened({'x.bin': bytes(16)}, shape=(1, 2), dtype=torch.float32)"): (
            "x.bin has 16 bytes, but torch.float32 [1, 2] from byte 0 on takes 8"
        ),
        "opened({'x.safetensors': tensors()}, 'z')": "no tensor 'z'",
        "opened({'x.safetensors': tensors(dtype='F4')})": "numbers of type F4 cannot be read",
        "opened({'x.safetensors': tensors(shape=(-4, -4))})": "x.safetensors is damaged",
        "opened({'x.safetensors': tensors(shape=(4, 4.0))})": "x.safetensors is damaged",
        "opened({'x.safetensors': tensors(shape=(True, 16))})": "x.safetensors is damaged",
        "opened({'x.safetensors': tensors(size=60)})": "it does not hold all of it",
        "opened({'x.safetensors': b'a,b'})": "x.safetensors is damaged",
        "opened({'x.safetensors': b''})": "x.safetensors is damaged",
        "opened({'x.npy': b'a,b'})": "x.npy is damaged, was cut off or is no .npy file",
        "opened({'x.npy': b''})": "x.npy is damaged, was cut off or is no .npy file",
        "opened({'x.npy': 3.0})": "holds a single number, not rows",
        "opened({'x.npy': np.asfortranarray(np.zeros((3, 4)))})": "Fortran order",
        "opened({'x.npy': np.zeros((3, 4), '>f8')})": "another byte order",
        "opened({'x.npy': np.array([{}])})": "dtype object, not numbers",
        "opened({'x.npy': feat}).fetch([1], torch.zeros(1, 3))": "out must be",
        "storage.open(feat)": "only one that maps a file can be opened",
        "storage.open(sparse)": "only one that maps a file can be opened",
        "storage.create(folder / 'a.bin', [2])": "must end in .npy",
        "storage.create(folder / 'b.npy', [-1])": "at least 0, got -1",
        ("storage.narrow(1e5 * torch.arange(80.0).view(20, 4), 'float16')"): (
            "cannot be float16: column 0"
        ),
        ("storage.narrow(torch.rand(50, 2).exp().exp(), 'auto', limit=1e-9)"): (
            "no column that can be narrow"
        ),
        "storage.narrow(feat.double() * 1e300)": (
            "must be finite in float32, but row 0 has inf in column 0"
        ),
    },
    "Learned rows": {
        "storage.EmbeddingTable(4, 2, lr=0.1, optimizer='rmsprop')": (
            "optimizer must be 'adagrad', 'sgd' or 'adam', got 'rmsprop'"
        ),
        "storage.EmbeddingTable(4, 2, lr=-1)": "lr must be finite and at least 0",
        "storage.EmbeddingTable(4, 2, lr=0.1, betas=(0.9, 0.99))": (
            "betas is for optimizer='adam', not 'adagrad'"
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1, optimizer='adam', betas=(0.9, 1))"): (
            "betas[1] must be at least 0 and below 1"
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1, optimizer='adam', betas=(0.9,))"): (
            "betas must be two numbers"
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1, optimizer='sgd', eps=0.001)"): (
            "eps is for optimizer='adam' or 'adagrad', not 'sgd'"
        ),
        "storage.EmbeddingTable(4, 2, lr=0.1, init='ones')": "init must be",
        "storage.EmbeddingTable(4, 2, lr=0.1, dtype=torch.int64)": "dtype must be torch.float32",
        "storage.EmbeddingTable(4, 0, lr=0.1)": "width must be at least 1",
        "storage.EmbeddingTable(-1, 2, lr=0.1)": "nodes must be at least 0",
        ("storage.EmbeddingTable(4, 2, lr=0.1).fetch([1], torch.empty(2, 2))"): (
            "out must be a contiguous CPU tensor torch.float32"
        ),
        "storage.EmbeddingTable(4, 2, lr=0.1).step()": "no row has a gradient",
        "storage.EmbeddingTable(4, 2, lr=0.1).step(feat)": "was not pulled",
        ("storage.EmbeddingTable(4, 2, lr=0.1).write([0, 1, 0], torch.ones(3, 2))"): (
            "ids holds 0 2 times"
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1).write([0], torch.ones(2, 2))"): (
            "rows must have shape"
        ),
        "setattr(storage.EmbeddingTable(4, 2, lr=0.1), 'lr', -1)": "lr must be",
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).load_state_dict(storage.EmbeddingTable(4, 2"
            ", lr=1, seed=3).state_dict())"
        ): ("a table with seed=3, this one has 0"),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).load_state_dict(storage.EmbeddingTable(4, 2"
            ", lr=1, optimizer='adam').state_dict())"
        ): ("with optimizer='adam'"),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).load_state_dict(storage.EmbeddingTable(5, 2"
            ", lr=1).state_dict())"
        ): ("another table: rows is"),
        (
            "storage.EmbeddingTable(4, 2, lr=1, folder=written({}) / 't').load_state_dict(sto"
            "rage.EmbeddingTable(4, 2, lr=0.1).state_dict())"
        ): ("of a table in memory, this one is in files"),
        ("storage.EmbeddingTable(4, 2, lr=0.1).load_state_dict({'rows': 3})"): (
            "must be what state_dict returned"
        ),
        "storage.Pipeline([], {}, print)": "pulls must name at least one table",
        "storage.Pipeline([], pulls, print, staleness=0)": "staleness must be at least 1, got 0",
    },
    "Outputs of full passes": {
        "model.inference(graph, feat, out=torch.zeros(3, 2))": "out must have 20 rows",
        "model.inference(graph, feat, out=torch.zeros(20, 4))": (
            "out must be torch.float32 [20, 2]"
        ),
        ("model.inference(graph, feat, out=torch.zeros(20, 2).double())"): (
            "got torch.float64 [20, 2]"
        ),
        ("model.inference(graph, feat, out=torch.zeros(20, 2, requires_grad=True))"): (
            "requires a gradient"
        ),
        ("model.inference(graph, feat, out=torch.zeros(20, 4), folder=folder)"): (
            "out must be torch.float32 [20, 2]"
        ),
        ("model.inference(graph, feat, nodes=[1, 2], out=torch.zeros(20, 2))"): (
            "out must have 2 rows"
        ),
        ("model.inference(graph, feat, nodes=[1, 2], out=torch.zeros(2, 5))"): (
            "out must be torch.float32 [2, 2]"
        ),
        "nn.GCN(4, 4, 4).inference(graph, feat, out=feat)": "another tensor than h",
    },
}
"""Calls that raise ValueError, and words of its message, by what they are about."""
_OTHERS: dict[str, list[tuple[str, str, str]]] = {
    "Files of edges for a graph folder": [
        (
            "of_arrays({'e': [[0, 1]]}, 'e', ndata='nowhere')",
            "FileNotFoundError",
            "ndata['x']: there is no file",
        ),
        ("of_arrays({'e': [[0, 1]]}, 'nowhere')", "FileNotFoundError", "there is no file"),
        (
            "datasets.build_graph(3, folder)",
            "TypeError",
            "edges must be a file or a list of files, got int 3",
        ),
    ],
    "Lists of edges": [
        ("listed('0 1\\n', columns='src dst')", "TypeError", "columns must be a sequence of names"),
        ("datasets.read_edge_list(file)", "FileNotFoundError", "there is no file"),
    ],
    "Folders of text": [
        (
            ("read({'edges.csv': 'src,dst\\na,b\\n', 'nodes.csv': 'id\\na\\nb\\n'}, labels=True)"),
            "FileNotFoundError",
            "has no column label in nodes.csv; labels=False reads",
        ),
    ],
    "Folders of arrays": [
        ("datasets.read_folder(folder)", "FileNotFoundError", "there is no folder"),
        (
            "ringed({'adjacency.npz': None})",
            "FileNotFoundError",
            "has neither adjacency.npz nor edges.npz",
        ),
        (
            "read({'raw/x': b''})",
            "FileNotFoundError",
            "it looks like one of OGB: read_ogb(folder).save",
        ),
        (
            "ringed({'labels.npy': None, 'x.npy': [1], 'y.csv.gz': b''})",
            "FileNotFoundError",
            (
                "has no labels.npy or labels.npz; labels=False reads a graph without labels; not "
                "read: x.npy, y.csv.gz"
            ),
        ),
        (
            ("datasets.read_folder(written({'labels.npy': [1]}) / 'labels.npy')"),
            "NotADirectoryError",
            "labels.npy is a file; expected a folder",
        ),
    ],
    "Data sets": [
        ("datasets.Dataset('a', graph, train=[20])", "IndexError", "train[0] is 20"),
        ("datasets.Dataset('a', graph, val=[20])", "IndexError", "val[0] is 20"),
        ("datasets.Dataset('a', graph, test=[-1])", "IndexError", "test[0] is -1"),
        (
            "datasets.Dataset('a', graph, train=torch.ones(20).bool())",
            "TypeError",
            "must hold node ids, got a bool mask",
        ),
        (
            ("datasets.Dataset('a', graph, category_names={'kind': ('a',)})"),
            "KeyError",
            "category_names has 'kind', which is no edge column",
        ),
        (
            (
                "papers(train=[1], target='paper', label=torch.tensor([0, 1, 0, -1]), author={'y'"
                ": torch.tensor([1, 0])})"
            ),
            "IndexError",
            "train[0] is 1, but paper node ids go from 2 to 5",
        ),
        ("saved()", "FileNotFoundError", "no node column 'label'"),
    ],
    "Caches and tiers": [
        ("storage.Cached(feat, ['a'] * 20, 5)", "TypeError", "heat must be"),
        ("storage.Cached([1], [1], 1)", "TypeError", "rows must be"),
        (
            ("storage.Tiered.split(feat.bfloat16(), heat, [('x.npy', None)])"),
            "TypeError",
            "cannot say that its numbers are bfloat16",
        ),
        (
            ("storage.Cached(feat.to_sparse_csr(), heat, '1 MB').fetch([1], torch.zeros(1, 4))"),
            "TypeError",
            "cannot be written into out",
        ),
        ("storage.presample(graph)", "TypeError", "NodeFlowLoader"),
        ("storage.presample(loader_, layer=3)", "IndexError", "layer 3"),
    ],
    "Rows in files": [
        ("opened({'x.npy': feat}, shape=(1, 2))", "TypeError", "belong together"),
        (
            "opened({'x.npy': feat}, shape=(2, 2), dtype=torch.float32)",
            "TypeError",
            "x.npy: shape is no argument for a .npy file",
        ),
        ("opened({'x.npy': feat}, offset=128)", "TypeError", "offset is no argument"),
        ("opened({'x.npy': feat}, 'x')", "TypeError", "name is no argument"),
        ("opened({'x.npy': feat}, verify=False)", "TypeError", "verify is no argument"),
        ("opened({'x.npy': feat}, direct='no')", "TypeError", "direct must be True or False"),
        ("opened({'x.safetensors': tensors()}, offset=8)", "TypeError", "offset is no argument"),
        (
            ("opened({'x.bin': bytes(16)}, 'x', shape=(2, 2), dtype=torch.float32)"),
            "TypeError",
            "name is no argument",
        ),
        (
            ("opened({'x.bin': bytes(16)}, shape=(2, 2), dtype=torch.qint8)"),
            "TypeError",
            "numbers of type",
        ),
        ("opened({'x.npy': feat}).fetch([20])", "IndexError", "20"),
        ("opened({'x.npy': feat}).fetch([-1])", "IndexError", "-1"),
        ("opened({'x.npy': feat}).fetch([1], [0])", "TypeError", "out must be"),
        ("storage.open(written({'raw': b''}))", "FileNotFoundError", "has no sparse rows in it"),
        ("storage.save_sparse(folder, torch.eye(3))", "TypeError", "sparse CSR"),
        ("storage.save_sparse(written({'x': b''}), sparse)", "FileExistsError", "overwrite"),
        ("storage.create(written({'a.npy': 3}) / 'a.npy', [2])", "FileExistsError", "a.npy exists"),
        ("storage.create(folder / 'b.npy', 3)", "TypeError", "shape must be a sequence"),
        (
            "storage.create(folder / 'b.npy', [3], np.float32)",
            "TypeError",
            "dtype must be a torch.dtype",
        ),
        (
            "storage.narrow(torch.ones(2, 2, requires_grad=True))",
            "TypeError",
            "requires a gradient",
        ),
        ("storage.narrow(torch.tensor(1.0))", "TypeError", "must be dense rows"),
        ("storage.narrow([1.0])", "TypeError", "a tensor, or an object"),
    ],
    "Learned rows": [
        (
            ("storage.EmbeddingTable(4, 2, lr=0.1, optimizer='adam', betas=0.9)"),
            "TypeError",
            "betas must be two numbers",
        ),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1, scale='big')",
            "TypeError",
            "scale must be a number",
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1, seed=0.5)", "TypeError", "seed must be an integer"),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).pull([0, 4])",
            "IndexError",
            "ids[1] is 4, but node ids go from 0 to 3",
        ),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).fetch([0, 4])",
            "IndexError",
            "ids[1] is 4, but node ids go from 0 to 3",
        ),
        ("storage.EmbeddingTable(4, 2, lr=0.1).pull([-1])", "IndexError", "ids[0] is -1"),
        (
            ("storage.EmbeddingTable(4, 2, lr=0.1).fetch(torch.tensor([True]))"),
            "TypeError",
            "bool mask",
        ),
        (
            "storage.EmbeddingTable(4, 2, lr=0.1).step([1])",
            "TypeError",
            "rows[0] must be a tensor that pull returned",
        ),
        (
            "storage.Pipeline(3, pulls, print)",
            "TypeError",
            "batches must be a loader or another iterable, got int 3",
        ),
        (
            "storage.Pipeline([], pulls, 3)",
            "TypeError",
            "compute must be a function of a batch and its rows",
        ),
        ("storage.Pipeline([], (3, print), print)", "TypeError", "pulls must be (table, ids)"),
        (
            "storage.Pipeline([], {'x': print}, print)",
            "TypeError",
            "pulls['x'] must be (table, ids)",
        ),
        (
            "storage.Pipeline([], pulls, print, staleness=1.5)",
            "TypeError",
            "staleness must be an integer",
        ),
        (
            (
                "list(storage.Pipeline([[4]], (storage.EmbeddingTable(4, 2, lr=0.1), list), print"
                ", staleness=2))"
            ),
            "IndexError",
            "ids[0] is 4, but node ids go from 0 to 3",
        ),
        ("storage.Lookahead([1], 60)", "TypeError", "NodeFlowLoader"),
        ("storage.Lookahead(loader_, 1200)", "TypeError", "nothing can be planned"),
    ],
    "Outputs of full passes": [
        (
            "model.inference(graph, feat, out=np.zeros((20, 2)))",
            "TypeError",
            "out must be a tensor",
        ),
        (
            ("model.inference(graph, feat, out=np.zeros((20, 2)), folder=folder)"),
            "TypeError",
            "out must be a tensor",
        ),
    ],
}
OF_FILES = {
    heading: [
        *((call, "ValueError", words) for call, words in calls.items()),
        *_OTHERS.get(heading, []),
    ]
    for heading, calls in _VALUES.items()
}
