// Bounds of the Disco Deterministic Network Calculator (DiscoDNC) for networks that standard input describes.
//
// Lines: "server RATE LATENCY..." with one latency for each class, the most urgent first; "flow CLASS BURST RATE SERVER..."
// with the servers of its way; "end". For each flow standard output has a line "TFA SFA". Bits, bits per nanosecond,
// nanoseconds. Servers are FIFO within a class. A class is left what the arrivals of more urgent ones leave of the server.

import de.uni_kl.cs.discodnc.curves.ArrivalCurve;
import de.uni_kl.cs.discodnc.curves.CurvePwAffine;
import de.uni_kl.cs.discodnc.curves.ServiceCurve;
import de.uni_kl.cs.discodnc.nc.AnalysisConfig;
import de.uni_kl.cs.discodnc.nc.ArrivalBoundDispatch;
import de.uni_kl.cs.discodnc.nc.analyses.SeparateFlowAnalysis;
import de.uni_kl.cs.discodnc.nc.analyses.TotalFlowAnalysis;
import de.uni_kl.cs.discodnc.nc.bounds.LeftOverService;
import de.uni_kl.cs.discodnc.network.Flow;
import de.uni_kl.cs.discodnc.network.Network;
import de.uni_kl.cs.discodnc.network.Server;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

public class Bounds {
    static final CurvePwAffine CURVES = CurvePwAffine.getFactory();

    static AnalysisConfig config() {
        AnalysisConfig config = new AnalysisConfig();
        config.setMultiplexingDiscipline(AnalysisConfig.MuxDiscipline.GLOBAL_FIFO);
        config.setArrivalBoundMethod(AnalysisConfig.ArrivalBoundMethod.PBOO_PER_HOP);
        return config;
    }

    /** The flows of one class, in servers that have what more urgent classes leave. */
    static void bound(int level, List<double[]> servers, List<double[]> flows, List<ArrivalCurve> urgent, String[] bounds)
            throws Exception {
        Network network = new Network();
        List<Server> nodes = new ArrayList<>();
        for (int at = 0; at < servers.size(); at++) {
            double[] server = servers.get(at);
            ServiceCurve all = CURVES.createRateLatency(server[0], server[1 + level]);
            ServiceCurve left = LeftOverService.arbMux(all, urgent.get(at));
            nodes.add(network.addServer("s" + at, left, AnalysisConfig.Multiplexing.FIFO));
        }
        List<Flow> own = new ArrayList<>();
        List<Integer> numbers = new ArrayList<>();
        for (int number = 0; number < flows.size(); number++) {
            double[] flow = flows.get(number);
            if ((int) flow[0] != level) {
                continue;
            }
            List<Server> way = new ArrayList<>();
            for (int hop = 3; hop < flow.length; hop++) {
                way.add(nodes.get((int) flow[hop]));
                if (hop > 3) {
                    // A link that is there already is given back.
                    network.addLink(way.get(hop - 4), way.get(hop - 3));
                }
            }
            own.add(network.addFlow("f" + number, CURVES.createTokenBucket(flow[2], flow[1]), way));
            numbers.add(number);
        }
        for (int at = 0; at < own.size(); at++) {
            TotalFlowAnalysis total = new TotalFlowAnalysis(network, config());
            total.performAnalysis(own.get(at));
            SeparateFlowAnalysis separate = new SeparateFlowAnalysis(network, config());
            separate.performAnalysis(own.get(at));
            double tfa = total.getDelayBound().doubleValue();
            double sfa = separate.getDelayBound().doubleValue();
            bounds[numbers.get(at)] = tfa + " " + sfa;
        }
        for (int at = 0; at < nodes.size(); at++) {
            if (network.getFlows(nodes.get(at)).isEmpty()) {
                continue;
            }
            ArrivalCurve arrivals = ArrivalBoundDispatch.computeArrivalBounds(network, config(), nodes.get(at)).iterator().next();
            urgent.set(at, CurvePwAffine.add(urgent.get(at), arrivals));
        }
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        List<double[]> servers = new ArrayList<>();
        List<double[]> flows = new ArrayList<>();
        StringBuilder output = new StringBuilder();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            double[] values = new double[words.length - 1];
            for (int at = 0; at < values.length; at++) {
                values[at] = Double.parseDouble(words[at + 1]);
            }
            switch (words[0]) {
                case "server" -> servers.add(values);
                case "flow" -> flows.add(values);
                case "end" -> {
                    String[] bounds = new String[flows.size()];
                    List<ArrivalCurve> urgent = new ArrayList<>();
                    servers.forEach(server -> urgent.add(CURVES.createZeroArrivals()));
                    for (int level = 0; level < servers.get(0).length - 1; level++) {
                        bound(level, servers, flows, urgent, bounds);
                    }
                    for (String bound : bounds) {
                        output.append(bound).append('\n');
                    }
                    servers.clear();
                    flows.clear();
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
        System.out.print(output);
    }
}
