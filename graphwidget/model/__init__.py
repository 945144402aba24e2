"""The records of graphwidget as plain data: capture writes them, analysis and drawing read them.

Nothing here knows torch. A `Snapshot` is the autograd graph at one moment, stored in columns (one
array per property, one position per node, edge or slot), because a hundred thousand small objects
cost more than walking the graph. `Node` and `SavedTensor` are light views on a position, made on
demand and never stored.

Three numbers name things, and they are never mixed:

* an **index** is a position in one snapshot's columns and means nothing outside it;
* a **uid** names a node from first sight to death, across snapshots;
* **n** numbers backward calls from 0, in the order in which they began.
"""

from graphwidget.model.cutting import cut, cut_edit
from graphwidget.model.edits import TextEdit
from graphwidget.model.findings import Finding, Findings
from graphwidget.model.fixes import Fix, Trial
from graphwidget.model.graph.comparison import Comparison, VariableChange
from graphwidget.model.graph.parts import (
    KEEPS_MEMORY,
    Kind,
    Leaf,
    ModuleCall,
    NodeFacts,
    Output,
    Owner,
    Place,
    SlotState,
    Storage,
    Storages,
    TensorRef,
    in_order,
    is_notebooks,
    spot_text,
)
from graphwidget.model.graph.snapshot import Node, SavedTensor, Snapshot
from graphwidget.model.measured.frozen import FrozenModule, IdleModule, MeasuredFrozen, MeasuredIdle, MeasuredJoined
from graphwidget.model.measured.lineage import (
    INTO_A_LEAF,
    INTO_A_TENSOR,
    Lineage,
    MeasuredConstant,
    MeasuredCut,
    MeasuredEmptied,
    MeasuredHook,
    MeasuredLate,
    MeasuredLeaf,
    MeasuredNonFinite,
    MeasuredTerm,
    MeasuredUnpacked,
    MeasuredZeros,
    PlainInput,
    TensorForm,
)
from graphwidget.model.measured.scenes import (
    AppliedFunction,
    CopiedTensor,
    Recomputed,
    RunningModule,
    Scene,
    Sight,
    UsedInside,
    Value,
)
from graphwidget.model.measured.starved import (
    Container,
    EmptyGroup,
    FalseFlag,
    KeptGradients,
    LostGradients,
    MovedWhileFrozen,
    NonFiniteParameters,
    StarvedParameters,
    UnheldLeaf,
)
from graphwidget.model.measured.text_line import TextLine
from graphwidget.model.nonfinite import NonFinite
from graphwidget.model.predictions import Answer, Prediction
from graphwidget.model.records import (
    FROM_OUTSIDE,
    BackwardCall,
    CellError,
    CellRun,
    Drawing,
    Event,
    Forecast,
    InnerCall,
    Look,
    Reason,
    Record,
    Write,
)
from graphwidget.model.sizes import bytes_text, type_text
from graphwidget.model.steps import Step, Steps
from graphwidget.model.verdicts import Verdict

__all__ = [
    "AppliedFunction",
    "INTO_A_LEAF",
    "INTO_A_TENSOR",
    "FrozenModule",
    "IdleModule",
    "Lineage",
    "MeasuredConstant",
    "MeasuredCut",
    "MeasuredEmptied",
    "MeasuredFrozen",
    "MeasuredHook",
    "MeasuredIdle",
    "MeasuredJoined",
    "MeasuredLate",
    "MeasuredNonFinite",
    "MeasuredTerm",
    "MeasuredUnpacked",
    "MeasuredLeaf",
    "MeasuredZeros",
    "TextLine",
    "Answer",
    "BackwardCall",
    "FROM_OUTSIDE",
    "CellError",
    "CellRun",
    "Comparison",
    "Container",
    "Drawing",
    "Event",
    "FalseFlag",
    "Finding",
    "Findings",
    "Fix",
    "Forecast",
    "KEEPS_MEMORY",
    "KeptGradients",
    "LostGradients",
    "EmptyGroup",
    "MovedWhileFrozen",
    "NonFiniteParameters",
    "InnerCall",
    "Kind",
    "Leaf",
    "Look",
    "ModuleCall",
    "Node",
    "NonFinite",
    "NodeFacts",
    "Output",
    "Owner",
    "Place",
    "PlainInput",
    "Prediction",
    "Reason",
    "CopiedTensor",
    "Recomputed",
    "Record",
    "SavedTensor",
    "RunningModule",
    "Scene",
    "Sight",
    "SlotState",
    "Snapshot",
    "StarvedParameters",
    "Step",
    "Steps",
    "Storage",
    "Storages",
    "TensorForm",
    "TensorRef",
    "TextEdit",
    "Value",
    "VariableChange",
    "Trial",
    "UnheldLeaf",
    "UsedInside",
    "Verdict",
    "Write",
    "bytes_text",
    "cut",
    "cut_edit",
    "in_order",
    "is_notebooks",
    "spot_text",
    "type_text",
]
