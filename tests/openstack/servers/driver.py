"""Neutron's mechanism driver of the lab: every port is bound at once, wherever it is.

The stock drivers bind a port only where an agent, or OVN, is alive; here there are none.
"""

from neutron_lib import constants
from neutron_lib.api.definitions import portbindings
from neutron_lib.plugins.ml2 import api


class Driver(api.MechanismDriver):

    @property
    def connectivity(self):
        return portbindings.CONNECTIVITY_L2

    def initialize(self):
        pass

    def bind_port(self, context):
        for segment in context.segments_to_bind[:1]:
            context.set_binding(segment[api.ID], portbindings.VIF_TYPE_OVS, {portbindings.CAP_PORT_FILTER: True},
                                status=constants.PORT_STATUS_ACTIVE)

    def filter_hosts_with_segment_access(self, context, segments, candidate_hosts, agent_getter):
        return set(candidate_hosts)
