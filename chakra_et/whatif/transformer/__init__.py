"""Steps of training a transformer: recognised in their graphs, written anew with other sizes."""

from chakra_et.whatif.transformer.rebuild import Rebuilt, rebuild
from chakra_et.whatif.transformer.recognise import Recognised, recognise
from chakra_et.whatif.transformer.same import alike
from chakra_et.whatif.transformer.tabled import TableTimes

__all__ = ["Rebuilt", "Recognised", "TableTimes", "alike", "rebuild", "recognise"]
